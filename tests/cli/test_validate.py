import pytest

from poolwise import catalog
from poolwise.cli import app as cli


def call(capsys, *words):
    code = cli.run([*map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_machine_is_recognized_and_described(capsys):
    code, out, err = call(capsys, "validate", "cerit-racks")
    assert (code, err) == (0, "")
    assert "a machine, CERIT racks" in out
    assert "192 whole nodes, 4 pools, 2 TiB memory in pools, 16 GiB memory in each whole node" in out


@pytest.mark.long
def test_scheduler_is_recognized_and_described(capsys, tmp_path):
    code, out, err = call(capsys, "validate", "catalog:f1-printed-easy")
    assert (code, err) == (0, "")
    assert "a scheduler, F1 with the sign as printed" in out
    assert "order f1(as_printed=True), backfill easy, placement racks, scope rack" in out
    file = tmp_path / "mine.toml"
    file.write_text('version = 1\nbackfill = { name = "easy", extra = "no" }\npass_per_event = true\n')
    code, out, err = call(capsys, "validate", file)
    assert (code, out) == (2, "") and f"{file}, line 2, field 'backfill.extra'" in err
    file.write_text(file.read_text().replace('"no"', "false"))
    code, out, _ = call(capsys, "validate", file)
    assert code == 0 and "order fcfs, backfill easy(extra=False), placement racks, one pass per event" in out
    assert call(capsys, "validate", file, "--set", "order=fm")[0] == 2


def test_study_is_described_with_its_runs(capsys):
    code, out, err = call(capsys, "validate", "cerit-pools", "--set", "scheduler.order=fm", "--set", "workload.jobs=800")
    assert (code, err) == (0, "")
    assert "a study, CERIT-SC" in out and "5 cells and 5 baseline runs, of 800 jobs each" in out


@pytest.mark.long
def test_errors_exit_with_2_and_name_the_line(capsys, tmp_path):
    file = tmp_path / "machine.toml"
    file.write_text('version = 1\n[[node]]\nname = "a"\nmemory = "16 Gib"\n[[rack]]\nnodes = { a = 1 }\n')
    code, out, err = call(capsys, "validate", file)
    assert (code, out) == (2, "")
    assert f"{file}, line 4, field 'node.a.memory'" in err and "GiB" in err
    file.write_text("version = 1\n")
    code, _, err = call(capsys, "validate", file)
    assert code == 2 and "not a machine, study, plan, search, scheduler, power table or price list" in err
    assert call(capsys, "validate", tmp_path / "nowhere.toml")[0] == 2
    code, _, err = call(capsys, "validate", "cerit-rack")
    assert code == 2 and "did you mean 'cerit-racks'" in err
    code, _, err = call(capsys, "validate", "cerit-racks", "--set", "name=x")
    assert code == 2 and "studies, plans and searches only" in err


def test_job_range_beyond_the_trace_is_rejected(capsys):
    code, _, err = call(capsys, "validate", "cerit-pools", "--set", "workload.first=17000", "--set", "workload.jobs=3500")
    assert code == 2 and "workload.jobs" in err


@pytest.mark.long
def test_plan_is_described_with_kind_and_jobs(capsys):
    code, out, err = call(capsys, "validate", "critical-beside-batch", "--set", "plan.seeds=1")
    assert (code, err) == (0, "")
    assert "a plan, Latency-critical jobs and batch jobs" in out and "kind dispatch, of 1,600 jobs: The queue order" in out


@pytest.mark.long
@pytest.mark.parametrize("name", ["cerit-pools", "gpu-share", "critical-beside-batch", "openb-gpus"])  # one of each kind
@pytest.mark.parametrize("change", [("[plan]", "[plan]\nbudgett = 1"), ('kind = "', 'kind = "x')])
def test_invalid_plan_gives_the_same_error_as_plan(capsys, tmp_path, name, change):
    text = catalog.find("plans", name).read_text()
    file = tmp_path / "mine.toml"
    file.write_text(text.replace(*change))
    validated, planned = call(capsys, "validate", file), call(capsys, "plan", file, "--out", tmp_path / "out")
    assert validated == planned
    assert validated[0] == 2 and f"{file}, line " in validated[2] and "remedy: " in validated[2]


def test_trace_of_a_plan_is_read(capsys, tmp_path):
    (tmp_path / "jobs.swf").write_text("no job\n")
    text = catalog.find("plans", "cerit-pools").read_text()
    (tmp_path / "mine.toml").write_text(text.replace("catalog:cerit-2013.swf.gz", "jobs.swf"))
    code, _, err = call(capsys, "validate", tmp_path / "mine.toml")
    assert code == 2 and "jobs.swf" in err


def test_power_table_and_price_list_of_a_name_are_described(capsys, tmp_path):
    code, out, err = call(capsys, "validate", "catalog:datacenter")
    assert (code, err) == (0, "")
    assert "a power table, Linear between idle and full use" in out and "a price list, Of the order of list prices" in out
    (tmp_path / "p.toml").write_text('version = 1\nprice = { gpu = "dear" }\n')
    code, _, err = call(capsys, "validate", tmp_path / "p.toml")
    assert code == 2 and "p.toml, line 2, field 'price.gpu'" in err


STUDY = """\
version = 1
machine = "racks.toml"
scheduler = "easy.toml"
power = "power.toml"
prices = "nowhere.toml"
[workload]
trace = "jobs.csv"
[performance]
model = "idael"
[today]
scheduler = "today.toml"
[vary]
"machine.pool.memory.memory" = ["1 GiB", "1 Gib"]
"scheduler.order" = ["fcfs", "fmm"]
"""
FILES = {
    "racks.toml": 'version = 1\n[[node]]\nname = "thin"\ncors = 4\n[[rack]]\nnodes = { thin = 4 }\n[[pool]]\nname = "memory"\n',
    "easy.toml": 'version = 1\nbackfill = "eassy"\n',
    "power.toml": "version = 1\n[idle_watts]\nthin = -1\n[busy_watts]\nthin = 2\n",
    "today.toml": 'version = 1\norder = "sjff"\n',
}
EXPECTED = (
    ("study.toml, line 5, field 'prices': no such file: nowhere.toml", 'give a prices file, or "catalog:NAME"'),
    ("study.toml, line 7, field 'workload.trace': no such file: jobs.csv", "--set workload.trace=PATH"),
    ("study.toml, line 9, field 'performance.model': unknown model 'idael'", "did you mean 'ideal'?"),
    ("study.toml, line 13, field 'machine.pool.memory.memory': vary: '1 Gib': unknown unit", "correct the value"),
    ("study.toml, line 14, field 'scheduler.order': vary: unknown order 'fmm'", "did you mean 'fm'?"),
    ("racks.toml, line 4, field 'machine.node.thin.cors': unknown key 'cors'", "did you mean 'cores'?"),
    ("easy.toml, line 2, field 'scheduler.backfill': unknown backfill 'eassy'", "did you mean 'easy'?"),
    ("power.toml, line 3, field 'power.idle_watts.thin': input should be greater than", "correct the value"),
    ("today.toml, line 2, field 'scheduler.order': unknown order 'sjff'", "did you mean 'sjf'?"),
)


def test_all_errors_of_all_files_are_reported_in_one_run(capsys, tmp_path):
    for name, text in {**FILES, "study.toml": STUDY}.items():
        (tmp_path / name).write_text(text)
    code, out, err = call(capsys, "validate", tmp_path / "study.toml")
    assert (code, out) == (2, "")
    for problem, remedy in EXPECTED:
        assert f"{tmp_path}/{problem}" in err, err
        assert remedy in err[err.index(problem) :].split("remedy: ", 2)[1], err
    assert err.count("remedy: ") == len(EXPECTED), "each error once"


def test_errors_of_a_plan_and_its_run_are_reported_in_one_run(capsys, tmp_path):
    text = catalog.find("plans", "cerit-pools").read_text()
    for old, new in (("[plan]", "[plan]\nbudgett = 1"), ("catalog:cerit-2013.swf.gz", "jobs.swf")):
        assert old in text
        text = text.replace(old, new, 1)
    (tmp_path / "mine.toml").write_text(text)
    code, _, err = call(capsys, "validate", tmp_path / "mine.toml")
    assert code == 2 and "field 'plan.budgett'" in err and "no such file: jobs.swf" in err
