"""Old forms of commands and options: each is rewritten, runs, and prints one warning with the new form."""

import re
import shlex
from pathlib import Path

import pytest

from poolwise.cli import app as cli
from poolwise.cli.aliases import ALIASES, replace_old_forms
from poolwise.files.state import write_state
from tests.engines.test_from_state import state
from tests.helpers.data import ROOT
from tests.helpers.vinesim_files import FILES

JOBS = "id,submit_ns,nodes,duration_ns\n" + "".join(f"{k},{k},{1 + k % 3},{(1 + 7 * k % 11) * 10**9}\n" for k in range(12))
EXAMPLES = {
    "check": ("check sjf", "check-policy sjf"),
    "node-agent": ("node-agent a.toml --check", "agent devices a.toml --check"),
    "agent node": ("agent node a.toml --dry-run", "agent memory a.toml --dry-run"),
    "agent memory --let-go": ("agent node a.toml --let-go", "agent memory a.toml --release"),
    "forecast --backtest LOG": (
        "forecast --processors 4 --backtest=jobs.csv --instants 5 --samples 2",
        "forecast backtest jobs.csv --processors 4 --instants 5 --samples 2",
    ),
    "forecast --live CLUSTER": ("forecast --live slurm --port 0", "forecast live slurm --port 0"),
    "forecast DIR": ("forecast now --samples 5 --json", "forecast state now --samples 5 --json"),
    "forecast live kubernetes --partition NAME": (
        "forecast --live kubernetes --partition mine",
        "forecast live kubernetes --name mine",
    ),
    "explain --live JOB --cluster CLUSTER": (
        "explain --live default/p5 --scheduler s.toml --cluster kubernetes",
        "explain live kubernetes default/p5 --scheduler s.toml",
    ),
    "explain --live JOB": ("explain --live 42 --scheduler s.toml", "explain live slurm 42 --scheduler s.toml"),
    "explain live kubernetes --partition NAME": (
        "explain --live default/p5 --cluster kubernetes --partition mine --scheduler s.toml",
        "explain live kubernetes default/p5 --name mine --scheduler s.toml",
    ),
    "explain LOG JOB --machine MACHINE": (
        "explain jobs.csv 3 --machine cerit-racks --json",
        "explain log jobs.csv 3 --machine cerit-racks --json",
    ),
    "explain LOG JOB --processors N": ("explain jobs.csv 3 --processors 4", "explain log jobs.csv 3 --processors 4"),
    "explain LOG JOB --order NAME": (
        "explain --processors 4 jobs.csv --order sjf 3",
        "explain log --processors 4 jobs.csv --order sjf 3",
    ),
    "explain RUN JOB": ("explain runs.csv 3 --all", "explain run runs.csv 3 --all"),
    "simulate --run FILE": (
        "simulate --run runs.csv.provenance.json --json",
        "simulate rerun runs.csv.provenance.json --json",
    ),
    "simulate --format vinesim": (
        "simulate trace.txt --format vinesim --machine deployment.txt --affinity affinity.txt --inter-arrival 7us",
        "simulate vinesim trace.txt --machine deployment.txt --affinity affinity.txt --inter-arrival 7us",
    ),
    "simulate SNAPSHOT": ("simulate now --json", "simulate snapshot now --json"),
    "simulate snapshot --unsaid TIME": (
        "simulate now --unsaid 2h --engine reference",
        "simulate snapshot now --default-runtime 2h --engine reference",
    ),
    "profile measure --longest TIME": (
        "profile measure --longest 5s --out a.csv -- sleep --longest 1",
        "profile measure --timeout 5s --out a.csv -- sleep --longest 1",
    ),
    "live slurm --give-back": (
        "live slurm --give-back --scheduler catalog:fm-easy",
        "live slurm --release --scheduler catalog:fm-easy",
    ),
    "live kubernetes --attach SECONDS": (
        "live kubernetes --attach 5 --scheduler catalog:fm-easy",
        "live kubernetes --attach-timeout 5 --scheduler catalog:fm-easy",
    ),
}
"""Old form -> a command in that form, and in the new one."""
RUN_HERE = ("check", "forecast DIR", "forecast --backtest LOG", "simulate", "explain LOG", "explain RUN")
"""Forms whose commands need neither a cluster nor special rights."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """Write the files that the examples name, and change to their folder."""
    monkeypatch.chdir(tmp_path)
    for name, text in {**FILES, "jobs.csv": JOBS}.items():
        (tmp_path / name).write_text(text)
    write_state(state(), tmp_path / "now")
    assert cli.run(shlex.split("simulate jobs.csv --processors 4 --schedule runs.csv")) == 0
    capsys.readouterr()
    return tmp_path


def test_every_alias_has_an_example() -> None:
    assert list(EXAMPLES) == [alias.old for alias in ALIASES]


@pytest.mark.parametrize("old", EXAMPLES)
def test_old_form_is_rewritten_with_a_warning(old: str, folder: Path) -> None:
    given, wanted = EXAMPLES[old]
    words, warning = replace_old_forms(shlex.split(given), cli.command())
    assert words == shlex.split(wanted)
    assert warning.endswith(f"; use `poolwise {wanted}`") and "will be removed in 0.2.0" in warning


@pytest.mark.parametrize("old", EXAMPLES)
def test_new_form_is_accepted_without_a_warning(old: str, folder: Path) -> None:
    root, words = cli.command(), shlex.split(EXAMPLES[old][1])
    assert replace_old_forms(words, root) == (words, "")
    command = root
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    command.make_context("poolwise", words)


@pytest.mark.parametrize("old", [old for old in EXAMPLES if old.startswith(RUN_HERE)])
def test_old_form_runs_and_warns_once(old: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given, wanted = EXAMPLES[old]
    if "backtest" in old:
        (folder / "jobs.csv").write_text(JOBS + "".join(f"{k},{k}000000000,4,9000000000\n" for k in range(100, 400)))
    assert cli.run(shlex.split(given)) == 0
    shown = capsys.readouterr()
    assert shown.err.count("is deprecated") == 1 and f"use `poolwise {wanted}`" in shown.err
    assert cli.run(shlex.split(wanted)) == 0
    again = capsys.readouterr()
    assert "deprecated" not in again.err
    if "--json" not in given and "engine" not in again.out:
        assert again.out == shown.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("forecast stat now", "Did you mean 'state'"),
        ("explain rnu runs.csv 3", "Did you mean 'run'"),
        ("chek sjf", "No such command 'chek'"),
    ],
)
def test_misspelled_command_is_not_taken_for_an_old_form(
    words: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(words.split()) == 2
    shown = capsys.readouterr().err
    assert message in shown and "deprecated" not in shown


@pytest.mark.parametrize(
    "words", ["forecast --help", "explain --help", "simulate --help", "simulate jobs.csv --processors 4", "compare now now"]
)
def test_present_forms_are_unchanged(words: str, folder: Path) -> None:
    assert replace_old_forms(words.split(), cli.command()) == (words.split(), "")


def test_value_of_an_option_is_not_taken_for_an_argument(folder: Path) -> None:
    words = ["simulate", "jobs.csv", "--machine", "now"]
    assert replace_old_forms(words, cli.command()) == (words, ""), "a folder with the name of a machine"


def test_option_of_a_measured_program_is_not_rewritten() -> None:
    words = ["profile", "measure", "--out", "a.csv", "./solver", "--longest", "3"]
    assert replace_old_forms(words, cli.command()) == (words, "")


def test_no_option_is_a_flag_in_one_command_and_takes_a_value_in_another() -> None:
    flags, valued = set(), set()

    def collect(command) -> None:
        for option in (one for one in command.params if one.param_type_name == "option"):
            (flags if option.is_flag else valued).update((*option.opts, *option.secondary_opts))
        for inner in getattr(command, "commands", {}).values():
            collect(inner)

    collect(cli.command())
    assert not flags & valued


def test_documented_table_lists_every_alias() -> None:
    page = (ROOT / "docs" / "reference" / "compatibility.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `poolwise ([^`]+)` \| `poolwise ([^`]+)` \| ([\d.]+) \|$", page, re.MULTILINE)
    assert rows == [(alias.old, alias.new, alias.removed_in) for alias in ALIASES]
