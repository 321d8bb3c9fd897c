"""`poolwise simulate snapshot`."""

import json
from pathlib import Path

import pytest

from poolwise.cli import app as cli_app
from poolwise.cli.app import run
from poolwise.files.state import write_state
from tests.engines.test_from_state import state


def test_simulation_continues_from_a_snapshot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli_app._discover()
    write_state(state(), tmp_path / "now")
    table = tmp_path / "schedule.csv"
    command = ["simulate", "snapshot", str(tmp_path / "now"), "--default-runtime", "2h", "--json"]
    assert run([*command, "--engine", "reference", "--schedule", str(table)]) == 0
    shown = capsys.readouterr()
    content = json.loads(shown.out)
    assert content["jobs"] == 5 and any("1, each assumed to run 2h (--default-runtime)" in note for note in content["notes"])
    assert content["provenance"]["scheduler"] == "fcfs with easy" and "--default-runtime" in shown.err
    assert [line.split(",")[0] for line in table.read_text().splitlines()] == ["id", "10", "30", "50", "20", "40"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--order", "fm"], "Did you mean `poolwise simulate log`?"),
        (["--default-runtime", "long"], "--default-runtime"),
        (["--machine", "cerit-racks"], "No such option: --machine"),
    ],
)
def test_option_of_another_mode_is_rejected(
    more: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli_app._discover()
    write_state(state(), tmp_path / "now")
    assert run(["simulate", "snapshot", str(tmp_path / "now"), *more]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
