from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise import registry
from poolwise.errors import InputError, UnknownNameError
from poolwise.model import Machine, Workload
from poolwise.traces import info, read, stretch
from poolwise.units import SECOND

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


def test_the_format_is_found_out(swf):
    found = read(swf, MACHINE)
    assert np.array_equal(found.id, read(str(swf), MACHINE, format="swf").id)
    assert found.name == "some"
    assert found.nodes.tolist() == [2, 2, 2, 2]


def test_names_and_files_that_are_not_there(swf, tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "nothing.swf", MACHINE)
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path, MACHINE)
    with pytest.raises(UnknownNameError, match="swf"):
        read(swf, MACHINE, format="swff")
    with pytest.raises(InputError, match="extra_columns"):
        read(swf, MACHINE, extra=3)


def test_a_file_of_no_format_lists_the_formats(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("what is this\n")
    with pytest.raises(InputError, match="no known format") as caught:
        read(path, MACHINE)
    assert "swf" in caught.value.remedy
    assert "table" in caught.value.remedy


def test_a_file_of_two_formats_is_not_guessed(swf, monkeypatch):
    @dataclass(frozen=True)
    class Other:
        def recognises(self, path):
            return True

    registry.names("formats")
    monkeypatch.setitem(registry._registered["formats"], "other", Other)
    with pytest.raises(InputError, match="several formats: other, swf"):
        read(swf, MACHINE)


def test_a_machine_without_memory_leaves_memory_out_and_counts_it(swf):
    flat = read(swf, Machine.flat(100))
    assert flat.memory.tolist() == [0, 0, 0, 0]
    assert flat.repaired == {"memory left out, since the machine has none": 4}
    assert flat.attributes["memory_known"].tolist() == [1, 1, 1, 1]
    for machine in (MACHINE, Machine.of_racks(1, 1, pool=1)):
        assert "memory left out, since the machine has none" not in read(swf, machine).repaired
        assert read(swf, machine).memory.min() > 0


@given(st.lists(st.integers(0, 50), min_size=1, max_size=8), st.data())
def test_a_stretch_is_those_rows_with_time_from_the_first(submit, data):
    workload = some(submit, name="whole")
    first = data.draw(st.integers(0, len(submit) - 1))
    jobs = data.draw(st.integers(1, len(submit) - first))
    part = stretch(workload, first, jobs)
    assert len(part) == jobs
    assert int(part.submit[0]) == 0
    for k in range(jobs):
        whole, cut = workload.job(first + k), part.job(k)
        assert cut.submit == whole.submit - int(workload.submit[first])
        assert (cut.id, cut.duration, cut.requested, cut.nodes) == (whole.id, whole.duration, whole.requested, whole.nodes)
        assert (cut.memory, cut.attribute("u")) == (whole.memory, whole.attribute("u"))
    assert (part.excluded, part.repaired, part.name) == (workload.excluded, workload.repaired, "whole")


@pytest.mark.parametrize(("first", "jobs"), [(-1, 1), (0, 0), (0, 4), (3, 1), (2, 2)])
def test_a_stretch_beyond_the_rows_is_an_input_error(first, jobs):
    with pytest.raises(InputError, match="has 3 jobs"):
        stretch(some([1, 2, 3]), first, jobs)


def test_info_counts_measures_and_compares_with_the_machine():
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


def test_info_of_unknown_memory_believes_the_trace_not_the_substitute(tmp_path):
    path = tmp_path / "some.swf"
    path.write_text(ROW.format(id=1, submit=0, run=5) + ROW.format(id=2, submit=1, run=5).replace(" 2048 ", " -1 "))
    content = info(read(path, MACHINE, memory_unknown="1 GiB"))
    assert content["memory_known"] == 0.5
    assert content["memory_mib"]["max"] == 8
