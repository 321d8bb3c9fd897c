"""`poolwise affinity`."""

from pathlib import Path

import pytest

from poolwise.cli import app as cli

ROWS = "gpu,consolidated,job_type,num_gpus,steps_per_s\nk80,yes,A3C,1,2.5\nk80,yes,A3C,8,9\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "g.csv").write_text(ROWS)
    return tmp_path / "g.csv"


def test_tables_are_written_with_provenance(file, tmp_path, capsys):
    words = ["affinity", "gavel", str(file), "--out", str(tmp_path), "--name", "eight", "--set", "gpus=8"]
    assert cli.run(words) == 0
    assert (tmp_path / "eight-affinity.txt").read_text().split()[-1] == "9"
    assert 'unit_types = [\n  "k80",\n]' in (tmp_path / "eight-types.toml").read_text()
    assert (tmp_path / "eight-affinity.txt.provenance.json").is_file()
    assert "8 GPUs in one server" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gavle"], "gavel"),
        (["gavel", "--set", "gpu=8"], "gpus"),
        (["gavel", "--set", "gpus=eight"], "gpus"),
        (["gavel", "--out", "nowhere"], "no such folder"),
    ],
)
def test_unknown_names_and_folders_are_rejected(file, tmp_path, capsys, words, message):
    assert cli.run(["affinity", words[0], str(file), "--out", str(tmp_path), *words[1:]]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.glob("*.txt"))
