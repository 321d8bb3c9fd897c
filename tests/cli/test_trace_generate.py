import pytest

from poolwise.cli import app as cli
from poolwise.model import Machine
from poolwise.traces import read
from poolwise.traces.generators import generate


def call(capsys, *words):
    code = cli.run(["trace", "generate", *map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("ending", ["parquet", "csv", "csv.gz"])
def test_file_contains_the_workload_and_stderr_a_summary(ending, tmp_path, capsys):
    path = tmp_path / f"jobs.{ending}"
    words = ["perlmutter_like", "--seed", 3, "--jobs", 400, "--set", "hungry=true", "--set", "nodes=50", "--out", path]
    code, out, err = call(capsys, *words)
    assert (code, out) == (0, "")
    assert "400 jobs" in err
    assert "on 50 nodes" in err
    assert "limited to that number" in err
    got = read(path, Machine.of_racks(1, 50, local=64 * 1024))
    wanted = generate("perlmutter_like", seed=3, jobs=400, hungry=True, nodes=50)
    for column in ("id", "submit", "duration", "requested", "nodes", "memory"):
        assert (getattr(got, column) == getattr(wanted, column)).all()


def test_same_arguments_write_the_same_bytes(tmp_path, capsys):
    first, second = tmp_path / "a.parquet", tmp_path / "b.parquet"
    for path in (first, second):
        assert call(capsys, "lublin", "--jobs", 50, "--out", path)[0] == 0
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lublinn"], "did you mean 'lublin'"),
        (["lublin", "--set", "job=3"], "did you mean 'jobs'"),
        (["lublin", "--set", "jobs"], "KEY=VALUE"),
        (["lublin", "--set", "load=high"], "load"),
        (["lublin", "--jobs", "0"], "jobs must be between 1 and"),
    ],
)
def test_invalid_arguments_write_no_file(words, message, tmp_path, capsys):
    code, out, err = call(capsys, *words, "--out", tmp_path / "jobs.csv")
    assert (code, out) == (2, "")
    assert message in err
    assert not list(tmp_path.iterdir())


def test_folder_is_checked_before_generation(tmp_path, capsys):
    code, _, err = call(capsys, "lublin", "--jobs", 10**8, "--out", tmp_path / "no" / "jobs.csv")
    assert code == 2
    assert "does not exist" in err
