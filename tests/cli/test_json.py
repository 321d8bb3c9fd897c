"""JSON output: every `--json` command has `provenance`, `notes` and `warnings` in one shape."""

import json
import math
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from poolwise.cli import app as cli
from poolwise.files.state import write_state
from poolwise.presentation.answer import Certainty
from poolwise.version import __version__
from tests.engines.test_from_state import state
from tests.helpers.batch_file import BATCH
from tests.helpers.data import ROOT
from tests.helpers.vinesim_files import FILES

JOBS = "id,submit_ns,nodes,duration_ns\n" + "".join(
    f"{k},{k}000000000,{1 + k % 3},{(1 + 7 * k % 11) * 10**9}\n" for k in range(400)
)
SMALL = "--set workload.jobs=100 --set measure.warm_up=10 --set measure.baseline=false --jobs 1"
COMMANDS = {
    "compare": "compare runs.csv runs.csv",
    "explain log": "explain log jobs.csv 3 --processors 4",
    "explain run": "explain run runs.csv 3",
    "forecast backtest": "forecast backtest jobs.csv --processors 4 --instants 5 --samples 2",
    "forecast state": "forecast state now --samples 5",
    "list": "list orders",
    "place": "place batch.toml --time-limit 50ms",
    "plan": "plan cerit-pools --out plan --set workload.jobs=100 --set measure.warm_up=10 --set plan.certainty.over=nothing "
    "--jobs 1 --set plan.certainty.min=1 --set \"plan.size.1.values=['32 GiB']\"",
    "profile fit": "profile fit measured.csv --out profiles.csv",
    "run": f"run cerit-pools --out out {SMALL} --set 'vary.scheduler.order=[\"fcfs\"]' "
    "--set 'vary.machine.pool.memory.memory=[\"1 TiB\"]'",
    "search": "search cerit-order --set budget.candidates=2 --jobs 1 --out searched",
    "simulate log": "simulate jobs.csv --processors 4",
    "simulate rerun": "simulate rerun runs.csv.provenance.json",
    "simulate snapshot": "simulate snapshot now --engine reference",
    "simulate vinesim": "simulate vinesim trace.txt --machine deployment.txt --affinity affinity.txt --inter-arrival 7us",
    "trace info": "trace info jobs.csv",
    "validate": "validate cerit-racks",
}
"""Command -> a small input."""
NOT_RUN = {
    "explain live kubernetes", "explain live slurm", "forecast live kubernetes", "forecast live slurm",
    "live kubernetes doctor", "profile measure",
}  # fmt: skip
"""Commands that need a cluster or root; only their option is checked."""


SLOW = ("forecast backtest", "forecast state", "plan", "search")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the files that the commands read."""
    path = tmp_path_factory.mktemp("json")
    batch = BATCH.format(remote="64 GiB", profile="kmeans")
    measured = "workload,remote,seconds\nsolver,0.0,1000\nsolver,0.25,1040\nsolver,0.5,1150\nsolver,0.75,1400\n"
    for name, text in {**FILES, "jobs.csv": JOBS, "batch.toml": batch, "measured.csv": measured}.items():
        (path / name).write_text(text)
    write_state(state(), path / "now")
    return path


def run_json(words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> dict:
    arguments = [*shlex.split(words), "--json"]
    monkeypatch.setattr(sys, "argv", ["poolwise", *arguments])
    assert cli.run(arguments) in (0, 3), capsys.readouterr().err
    return json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long) if name in SLOW else name for name in COMMANDS])
def test_json_has_provenance_notes_and_warnings(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    if not (folder / "runs.csv").exists():
        assert cli.run(shlex.split("simulate jobs.csv --processors 4 --schedule runs.csv")) == 0
        capsys.readouterr()
    content = run_json(COMMANDS[name], monkeypatch, capsys)
    assert {"provenance", "notes", "warnings"} < content.keys()
    for texts in (content["notes"], content["warnings"]):
        assert isinstance(texts, list) and all(isinstance(text, str) for text in texts)
    source = content["provenance"]
    assert source["poolwise"] == __version__ and source["command"] == ["poolwise", *shlex.split(COMMANDS[name]), "--json"]
    assert source["seed"] is None or isinstance(source["seed"], int)
    assert all(len(sha256) == 64 for sha256 in source["inputs"].values())
    assert source["inputs"] or name == "list"


def test_every_json_command_is_tested() -> None:
    tested = set()

    def collect(command, path: str) -> None:
        if any("--json" in option.opts for option in command.params):
            tested.add(path)
        for name, inner in getattr(command, "commands", {}).items():
            collect(inner, f"{path} {name}".strip())

    collect(cli.whole_command(), "")
    assert tested == {*COMMANDS, *NOT_RUN}
    page = (ROOT / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in tested)


@pytest.mark.long
def test_warnings_on_stderr_are_in_the_json(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    (folder / "own.py").write_text(
        "import warnings\nfrom poolwise.policies import FCFS\n\nwarnings.warn('the ages are those of 2013')\n\n"
        "class Aged(FCFS):\n    pass\n"
    )
    words = shlex.split("-m poolwise simulate jobs.csv --processors 4 --order own.py:Aged --json")
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)  # pytest makes warnings errors
    assert "the ages are those of 2013" in done.stderr
    assert json.loads(done.stdout)["warnings"] == ["the ages are those of 2013"]
    assert run_json("simulate snapshot now --engine reference", monkeypatch, capsys)["warnings"] == []


def test_notes_on_stderr_are_in_the_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["simulate", "snapshot", str(folder / "now"), "--engine", "reference", "--json"]) == 0
    shown = capsys.readouterr()
    notes = json.loads(shown.out)["notes"]
    assert notes and all(f"note: {text}" in shown.err for text in notes)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [("place", {"bound"}), ("plan", {"unknown"}), ("run", {"unknown"})],
)
def test_certainty_is_in_the_json(
    name: str, kinds: set[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    content = run_json(COMMANDS[name], monkeypatch, capsys)
    certainty = content["certainty"]
    assert {"kind", "level", "interval", "probability", "samples", "over"} <= certainty.keys()
    assert certainty["kind"] in kinds
    if name == "place":
        assert certainty["interval"] == [content["bound"], content["objective"]]
    if name == "plan":
        assert (certainty["min"], certainty["over"]) == (1, "nothing")


def test_undefined_bounds_of_a_certainty_are_null() -> None:
    content = Certainty("meets", 0.95, 3, "seeds", (-math.inf, 2.0)).to_dict()
    assert content == {
        "kind": "meets", "level": 0.95, "interval": [None, 2.0], "probability": None, "samples": 3, "over": "seeds"
    }  # fmt: skip
