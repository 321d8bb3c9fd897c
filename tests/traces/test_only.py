"""Filters select the same jobs as a slow loop, wherever a log is read, and count all others."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise import Machine, read
from poolwise.cli import app as cli
from poolwise.cli.forecast import LogFormat
from poolwise.errors import InputError, UnknownNameError
from poolwise.forecasting.forecast import read_log
from poolwise.studies import load, run
from tests.helpers.data import DATA

LOG = DATA / "slurm-export" / "sacct.txt"
MACHINE = Machine.of_racks(1, 12, local="2 TiB", cores=32)
ALL = read(LOG, MACHINE)
HOUR = 3600 * 10**9


@given(
    st.dictionaries(
        st.sampled_from(["partition", "user", "account", "qos", "state"]), st.sets(st.integers(0, 20), min_size=1), max_size=3
    ),
    st.integers(0, 6),
    st.integers(1, 8),
)
def test_only_matches_a_loop_over_the_jobs(chosen: dict[str, set[int]], first: int, last: int) -> None:
    values = {name: sorted({*ALL.attributes[name].tolist()}) for name in chosen}
    only = {name: sorted({values[name][k % len(values[name])] for k in which}) for name, which in chosen.items()}
    limits = {"from": f"{first} h", "to": f"{last} h"}
    expected = [
        id
        for k, id in enumerate(ALL.id.tolist())
        if all(ALL.attributes[name][k] in wanted for name, wanted in only.items())
        and first * HOUR <= ALL.submit[k] < last * HOUR
    ]
    if not expected:
        with pytest.raises(InputError, match="no usable rows"):
            read(LOG, MACHINE, only={**only, **limits})
        return
    workload = read(LOG, MACHINE, only={**only, **limits})
    assert workload.id.tolist() == expected
    assert workload.submit[0] == 0
    assert np.array_equal(np.diff(workload.submit), np.diff(ALL.submit[np.isin(ALL.id, expected)]))
    assert sum(workload.excluded.values()) - sum(ALL.excluded.values()) == len(ALL) - len(workload)


def test_dates_are_in_the_time_zone_of_the_log() -> None:
    assert read(LOG, MACHINE, only={"from": "2026-03-02T12:00:00"}).id[0] == 140
    assert read(LOG, MACHINE, only={"from": "2026-03-02T12:00:00"}, timezone="Europe/Berlin").id[0] == 140
    assert read(LOG, MACHINE, only={"to": "2026-03-02T08:10:00"}).id.tolist() == [100]
    with pytest.raises(InputError, match="no usable rows"):
        read(LOG, MACHINE, only={"from": "2026-03-03"})


@pytest.mark.parametrize(
    ("only", "field", "words"),
    [
        ({"partition": "bach"}, "only.partition", "did you mean 'batch'"),
        ({"projekt": "a"}, "only.projekt", "unknown attribute"),
        ({"from": "yesterday"}, "only.from", "is not a date"),
    ],
)
def test_errors_name_file_and_filter(only: dict[str, str], field: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as raised:
        read(LOG, MACHINE, only=only)
    assert (raised.value.field, raised.value.file) == (field, LOG)


def test_dates_need_a_log_with_dates(tmp_path: Path) -> None:
    rows = ["1 0 3 100 24 -1 1024 24 200 -1 1 5 -1 -1 -1 -1 -1 -1", "2 90000 3 100 24 -1 1024 24 200 -1 1 5 -1 -1 -1 -1 -1 -1"]
    (tmp_path / "log.swf").write_text("\n".join(rows))
    with pytest.raises(InputError, match="no calendar times"):
        read(tmp_path / "log.swf", MACHINE, only={"from": "2026-03-02"})
    (tmp_path / "log.swf").write_text("; UnixStartTime: 1772323200\n" + "\n".join(rows))  # 2026-03-01
    assert read(tmp_path / "log.swf", MACHINE, only={"from": "2026-03-02", "user": 5}).id.tolist() == [2]


def test_mapped_table_has_dates(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("submit,duration,nodes,user\n2026-03-01 00:00:00,5,1,a\n2026-03-02 00:00:00,5,1,b\n")
    assert read(tmp_path / "log.csv", MACHINE, only={"from": "2026-03-02"}).attributes["user"].tolist() == ["b"]


STUDY = f"""version = 1
[machine]
version = 1
[[machine.node]]
name = "n"
cores = 32
memory = "2 TiB"
[[machine.rack]]
nodes = {{ n = 12 }}
[workload]
trace = "{LOG}"
only = {{ account = ["chem", "phys"], to = "6 h" }}
[measure]
warm_up = 0
baseline = false
"""


def test_study_reads_the_selected_jobs_and_depends_on_them(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    study = load(tmp_path / "study.toml")
    (cell,) = study.cells
    expected = read(LOG, MACHINE, only={"account": ["chem", "phys"], "to": "6 h"})
    result = run(study, tmp_path / "out")
    assert result.facts[cell.key]["jobs"] == len(expected)
    assert result.facts[cell.key]["excluded"]["account other than chem, phys"] > 0
    assert any("account other than chem, phys" in note for note in result.notes())
    (other,) = load(tmp_path / "study.toml", {"workload.only.to": "5 h"}).cells
    assert other.key != cell.key
    assert len(cell.workload.content()) == len({**cell.workload.content(), "only": {}})
    saved = json.loads((tmp_path / "out" / "provenance.json").read_text())
    assert saved["runs"][0]["run"]["workload"]["only"] == {"account": ["chem", "phys"], "to": "6 h"}


def test_only_without_a_trace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY.replace(f'trace = "{LOG}"', 'generator = "lublin"'))
    with pytest.raises(InputError, match="only selects jobs of a trace"):
        load(tmp_path / "study.toml")


@pytest.mark.parametrize(
    "words",
    [
        ["trace", "info", str(LOG), "--machine-cores", "32", "--json"],
        ["simulate", str(LOG), "--machine", "machine.toml", "--json"],
    ],
)
def test_commands_show_the_counts_of_filtered_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("machine.toml").write_text('version = 1\n[[node]]\nname = "n"\ncores = 32\n[[rack]]\nnodes = { n = 12 }\n')
    assert cli.run([*words, "--only", "partition=batch,gpu", "--only", "user=ann,eve"]) == 0
    printed = json.loads(capsys.readouterr().out)
    expected = read(LOG, MACHINE, only={"partition": ["batch", "gpu"], "user": ["ann", "eve"]})
    assert "partition other than batch, gpu" in json.dumps(printed)
    if words[0] == "trace":
        assert printed["jobs"] == len(expected)


def test_forecasts_read_the_selected_jobs() -> None:
    workload = read_log(LOG, MACHINE, only={"partition": "short"}, memory_field="used")
    assert workload.id.tolist() == read(LOG, MACHINE, only={"partition": "short"}).id.tolist()
    options = LogFormat(only=[("partition", ["short"]), ("state", ["FAILED"])])
    assert options.read(LOG, MACHINE).id.tolist() == [102]


def test_filter_without_value_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["trace", "info", str(LOG), "--only", "partition"]) == 2
    assert "--only" in capsys.readouterr().err


def test_unknown_attribute_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="account, constraint, from"):
        read(LOG, MACHINE, only={"x": "y"})
