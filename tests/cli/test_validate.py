import pytest

from poolwise.cli import app as cli


@pytest.fixture(autouse=True, scope="module")
def commands():
    cli._discover()


def call(capsys, *words):
    code = cli.run([*map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_machine_is_recognised_and_described(capsys):
    code, out, err = call(capsys, "validate", "cerit-racks")
    assert (code, err) == (0, "")
    assert "a machine, CERIT racks" in out
    assert "192 whole nodes, 4 pools, 2 TiB of memory in pools, 16 GiB in each whole node" in out


def test_a_scheduler_is_recognised_and_described(capsys, tmp_path):
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
    assert code == 0 and "order fcfs, backfill easy(extra=False), placement racks, a pass per event" in out
    assert call(capsys, "validate", file, "--set", "order=fm")[0] == 2


def test_a_study_says_what_it_would_run(capsys):
    code, out, err = call(capsys, "validate", "cerit-pools", "--set", "scheduler.order=fm", "--set", "workload.jobs=800")
    assert (code, err) == (0, "")
    assert "a study, CERIT-SC" in out and "5 cells and 5 baseline runs, of 800 jobs each" in out


def test_errors_end_with_2_and_say_where(capsys, tmp_path):
    file = tmp_path / "machine.toml"
    file.write_text('version = 1\n[[node]]\nname = "a"\nmemory = "16 Gib"\n[[rack]]\nnodes = { a = 1 }\n')
    code, out, err = call(capsys, "validate", file)
    assert (code, out) == (2, "")
    assert f"{file}, line 4, field 'node.a.memory'" in err and "GiB" in err
    file.write_text("version = 1\n")
    code, _, err = call(capsys, "validate", file)
    assert code == 2 and "neither a machine, a study nor a scheduler" in err
    assert call(capsys, "validate", tmp_path / "nowhere.toml")[0] == 2
    code, _, err = call(capsys, "validate", "cerit-rack")
    assert code == 2 and "did you mean 'cerit-racks'" in err
    code, _, err = call(capsys, "validate", "cerit-racks", "--set", "name=x")
    assert code == 2 and "studies only" in err


def test_a_stretch_beyond_the_trace_is_found_before_anything_runs(capsys):
    code, _, err = call(capsys, "validate", "cerit-pools", "--set", "workload.first=17000", "--set", "workload.jobs=3500")
    assert code == 2 and "workload.jobs" in err
