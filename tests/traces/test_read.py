from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise import registry
from poolwise.errors import InputError, UnknownNameError
from poolwise.model import Machine, Workload
from poolwise.quantities import SECOND
from poolwise.traces import excerpt, info, read

MACHINE = Machine.of_racks(1, 10, local=1024, cores=4)
ROW = "{id} {submit} 3 {run} 8 -1 -1 8 100 2048 1 5 -1 -1 -1 -1 -1 -1\n"


@pytest.fixture
def swf(tmp_path):
    path = tmp_path / "some.swf"
    path.write_text("".join(ROW.format(id=k, submit=10 * k, run=20 + k) for k in range(1, 5)))
    return path


def some(submit, **columns):
    n = len(submit)
    return Workload.of(
        np.array(submit),
        np.arange(1, n + 1) * SECOND,
        requests={"nodes": np.arange(1, n + 1), "memory": np.arange(n)},
        attributes={"u": np.arange(n) / 10},
        excluded={"runtime unknown or 0": 2},
        repaired={"x": 3},
        **columns,
    )


def test_format_is_detected(swf):
    workload = read(swf, MACHINE)
    assert np.array_equal(workload.id, read(str(swf), MACHINE, format="swf").id)
    assert workload.name == "some"
    assert workload.nodes.tolist() == [2, 2, 2, 2]


def test_missing_files_and_unknown_names_are_reported(swf, tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "nothing.swf", MACHINE)
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path, MACHINE)
    with pytest.raises(UnknownNameError, match="swf"):
        read(swf, MACHINE, format="swff")
    with pytest.raises(InputError, match="extra_columns"):
        read(swf, MACHINE, extra=3)


def test_unrecognized_file_lists_formats(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("what is this\n")
    with pytest.raises(InputError, match="no known format") as caught:
        read(path, MACHINE)
    assert "swf" in caught.value.remedy
    assert "table" in caught.value.remedy


def test_ambiguous_format_is_an_error(swf, monkeypatch):
    @dataclass(frozen=True)
    class Other:
        def recognizes(self, path):
            return True

    registry.names("formats")
    monkeypatch.setitem(registry.REGISTERED["formats"], "other", Other)
    with pytest.raises(InputError, match="several formats match the file: other, swf"):
        read(swf, MACHINE)


def test_memory_is_ignored_and_counted_on_machine_without_memory(swf):
    flat = read(swf, Machine.flat(100))
    assert flat.memory.tolist() == [0, 0, 0, 0]
    assert flat.repaired == {"memory ignored, because the machine has none": 4}
    assert flat.attributes["memory_known"].tolist() == [1, 1, 1, 1]
    for machine in (MACHINE, Machine.of_racks(1, 1, pool=1)):
        assert "memory ignored, because the machine has none" not in read(swf, machine).repaired
        assert read(swf, machine).memory.min() > 0


@given(st.lists(st.integers(0, 50), min_size=1, max_size=8), st.data())
def test_stretch_selects_rows_and_shifts_time(submit, data):
    workload = some(submit, name="whole")
    first = data.draw(st.integers(0, len(submit) - 1))
    jobs = data.draw(st.integers(1, len(submit) - first))
    part = excerpt(workload, first, jobs)
    assert len(part) == jobs
    assert int(part.submit[0]) == 0
    for k in range(jobs):
        whole, cut = workload.job(first + k), part.job(k)
        assert cut.submit == whole.submit - int(workload.submit[first])
        assert (cut.id, cut.duration, cut.requested, cut.nodes) == (whole.id, whole.duration, whole.requested, whole.nodes)
        assert (cut.memory, cut.attribute("u")) == (whole.memory, whole.attribute("u"))
    assert (part.excluded, part.repaired, part.name) == (workload.excluded, workload.repaired, "whole")


@pytest.mark.parametrize(("first", "jobs"), [(-1, 1), (0, 0), (0, 4), (3, 1), (2, 2)])
def test_stretch_beyond_rows_is_an_error(first, jobs):
    with pytest.raises(InputError, match="has 3 jobs"):
        excerpt(some([1, 2, 3]), first, jobs)


def test_info_summarizes_workload_and_load():
    workload = some([0, 4 * SECOND, 10 * SECOND])  # 1, 2, 3 nodes for 1, 2, 3 s; 0, 1, 2 MiB
    content = info(workload)
    assert content["jobs"] == 3
    assert content["span_s"] == 10.0
    assert content["node_seconds"] == 1 + 4 + 9
    assert content["nodes"] | {"min": 1, "50%": 2, "max": 3} == content["nodes"]
    assert content["runtime_s"]["99%"] == 3
    assert content["memory_known"] == pytest.approx(2 / 3)
    assert content["memory_mib"]["min"] == 1
    assert (content["excluded"], content["repaired"]) == (workload.excluded, workload.repaired)
    assert "load" not in content
    small = info(workload, Machine.of_racks(2, 1))
    assert small["larger_than_machine"] == 1
    assert small["load"] == (1 + 4) / (2 * 10.0)
    assert info(some([5, 5]), MACHINE)["load"] is None


def test_info_reports_memory_of_trace_not_substitute(tmp_path):
    path = tmp_path / "some.swf"
    path.write_text(ROW.format(id=1, submit=0, run=5) + ROW.format(id=2, submit=1, run=5).replace(" 2048 ", " -1 "))
    content = info(read(path, MACHINE, memory_unknown="1 GiB"))
    assert content["memory_known"] == 0.5
    assert content["memory_mib"]["max"] == 8


def test_empty_file_is_reported_as_empty(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").touch()
    with pytest.raises(InputError, match="the file is empty"):
        read(tmp_path / "jobs.csv", MACHINE)
