"""`poolwise simulate` of a folder of `poolwise snapshot`."""

import json
from pathlib import Path

import pytest

from poolwise.cli import app as cli_app
from poolwise.cli.app import run
from poolwise.files.state import write_state
from tests.engines.test_from_state import state


def test_a_state_is_gone_on_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli_app._discover()
    write_state(state(), tmp_path / "now")
    kept = tmp_path / "schedule.csv"
    command = ["simulate", str(tmp_path / "now"), "--unsaid", "2h", "--engine", "reference", "--json", "--schedule", str(kept)]
    assert run(command) == 0
    shown = capsys.readouterr()
    content = json.loads(shown.out)
    assert content["jobs"] == 5 and any("1; each is taken to run 2h (--unsaid)" in note for note in content["notes"])
    assert content["provenance"]["scheduler"] == "fcfs with easy and racks" and "--unsaid" in shown.err
    assert [line.split(",")[0] for line in kept.read_text().splitlines()] == ["id", "10", "30", "50", "20", "40"]


@pytest.mark.parametrize(("more", "says"), [(["--order", "fm"], "a state has its machine"), (["--unsaid", "long"], "--unsaid")])
def test_what_does_not_go_with_a_state(more: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli_app._discover()
    write_state(state(), tmp_path / "now")
    assert run(["simulate", str(tmp_path / "now"), *more]) == 2
    assert says in capsys.readouterr().err
