"""Help pages: examples that run, panels of commands and options, and short descriptions."""

import os
import shlex
import shutil
import subprocess
import sys

import pytest
import typer

from poolwise.cli import app as cli
from poolwise.cli.examples import PROMPT
from poolwise.cli.panels import COMMON, MOST, PANELS
from tests.helpers.data import DATA, ROOT

READ_ONLY = {
    ("agent",), ("import",), ("live",), ("serve",), ("snapshot",), ("explain", "live"), ("forecast", "live"),
    ("forecast", "state"), ("simulate", "snapshot"), ("simulate", "rerun"), ("simulate", "vinesim"),
}  # fmt: skip
"""Commands whose examples need a cluster or files of the user, or never end: their examples are only parsed."""
LONG = {("compile",), ("plan",), ("reproduce",), ("profile", "measure")}
"""Commands whose examples take minutes or need rights: they run up to the computation."""

FILES = {
    "area.py": (
        "from dataclasses import dataclass\n\n\n@dataclass(frozen=True)\nclass Area:\n    kind = 'static'\n\n"
        "    def priority(self, queue, snapshot):\n        return -queue.table.requested_s[queue.jobs]\n"
    ),
    "measured.csv": "workload,remote,seconds\nsolver,0.0,1000\nsolver,0.25,1040\nsolver,0.5,1150\nsolver,0.75,1400\n",
}


def commands_of(command, path=()):
    """Yield the path of each command that is not a group, and the command."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name, subcommand in inner.items():
        yield from commands_of(subcommand, (*path, name))


def is_read_only(path):
    return any(path[: len(read_only)] == read_only for read_only in READ_ONLY)


def lines_of(epilog):
    return [line.removeprefix(PROMPT) for line in (epilog or "").split("\n\n") if line.startswith(PROMPT)]


@pytest.fixture(scope="module")
def everything(commands):
    return dict(commands_of(cli.whole_command()))


def test_every_command_has_an_example(everything):
    assert len(everything) >= 30
    for path, command in everything.items():
        lines = lines_of(command.epilog)
        assert lines, path
        assert shlex.split(lines[-1])[: 1 + len(path)] == ["poolwise", *path]


def test_examples_that_are_not_run_can_be_parsed(everything):
    for path, command in everything.items():
        for line in lines_of(command.epilog) if is_read_only(path) else ():
            command.make_context(path[-1], shlex.split(line)[1 + len(path) :])


@pytest.mark.long
def test_examples_run_unchanged(everything, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    shutil.copy(DATA / "affinity" / "gavel_isolated.csv", tmp_path)
    shutil.copy(ROOT / "docs" / "reproductions" / "irop.csv", tmp_path)
    for path, command in everything.items():
        if path not in LONG and not is_read_only(path):
            for line in lines_of(command.epilog):
                code = cli.run(shlex.split(line)[1:])
                assert code == 0, f"{line}\n{capsys.readouterr().err}"


@pytest.mark.long
def test_long_examples_run_up_to_the_computation(everything, tmp_path, monkeypatch, capsys):
    class InterruptedStart(BaseException):  # an Exception would be reported as an error in user code
        pass

    def work(*_, **__):
        raise InterruptedStart

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("poolwise.plans.plan.plan", work)
    monkeypatch.setattr("poolwise_reproductions.reproduction.reproduce", work)
    monkeypatch.setattr("poolwise.cli.compile._load", work)
    monkeypatch.setattr("joblib.Parallel.__call__", work)
    monkeypatch.setattr("poolwise_agents.profiling.control_groups.find_hierarchy", work)
    for path in everything:
        if path in LONG:
            for line in lines_of(everything[path].epilog):
                with pytest.raises(InterruptedStart):
                    cli.run(shlex.split(line)[1:])


@pytest.mark.parametrize(("path", "default"), [(("forecast", "backtest"), False), (("forecast", "state"), True)])
def test_only_forecasts_of_states_default_to_the_scheduler_of_the_state(everything, path, default):
    option = next(parameter for parameter in everything[path].params if parameter.name == "scheduler")
    assert ("scheduler of the state" in option.help) == default


def test_flags_show_no_type(everything):
    for path, command in everything.items():
        text = command.get_help(typer.Context(command))
        assert "bool" not in text.lower(), path


def test_root_help_lists_every_command_in_a_panel_with_one_short_line(commands, capsys):
    root = cli.whole_command()
    assert [*root.commands] == [name for names in PANELS.values() for name in names]
    for name, command in root.commands.items():
        summary = (command.help or "").partition("\n\n")[0]
        assert 0 < len(summary) <= 70 and "\n" not in summary, name
        assert summary[0].isupper() and summary.endswith("."), name
    assert cli.run(["--help"]) == 0
    shown = capsys.readouterr().out
    places = [shown.index(f" {panel} ") for panel in PANELS]
    assert places == sorted(places)


def test_panels_hold_at_most_twelve_options_with_common_ones_first(everything):
    for path, command in everything.items():
        options = [
            parameter for parameter in command.get_params(typer.Context(command)) if parameter.param_type_name == "option"
        ]
        panels = [option.rich_help_panel for option in options]
        assert all(panels.count(panel) <= MOST for panel in panels), path
        assert len(options) <= MOST or panels[0] == COMMON, path


def test_help_of_simulate_shows_its_commands_and_the_options_of_its_default(capsys):
    assert cli.run(["simulate", "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f" {word} " in shown for word in ("--machine", "--order", "rerun", "snapshot", "vinesim"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("forecast state now --port 3", "No such option: --port. Did you mean `poolwise forecast live`?"),
        ("forecast state now --instants 3", "No such option: --instants. Did you mean `poolwise forecast backtest`?"),
        ("explain run out 3 --partition p", "Did you mean `poolwise explain live slurm`?"),
        ("simulate log.swf --affinity a.txt", "Did you mean `poolwise simulate vinesim`?"),
        ("live slurm --lease a/b", "Did you mean `poolwise live kubernetes`?"),
        ("compare a b --metrik x", "No such option: --metrik (Possible options: --metric)"),
    ],
)
def test_option_of_a_related_command_is_reported_with_that_command(words, message, capsys):
    assert cli.run(words.split()) == 2
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())


@pytest.mark.parametrize(("words", "found"), [("poolwise tr", "trace"), ("poolwise simulate --ord", "--order")])
def test_shells_complete_commands_and_options(words, found):
    program = "import sys; sys.argv = ['poolwise']; from poolwise.cli import main; main()"
    environment = {"_POOLWISE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == [found]


@pytest.mark.parametrize("command", ["run", "plan"])
def test_interrupt_reports_how_to_resume(command, tmp_path, monkeypatch, capsys):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("poolwise.studies.run", stopped)
    monkeypatch.setattr("poolwise.plans.plan.plan", stopped)
    name = {"run": "cerit-pools", "plan": "gpu-share"}[command]
    code = cli.run([command, name, "--out", str(tmp_path / "out")])
    assert code == 130
    assert f"completed runs are kept in {tmp_path}/out" in capsys.readouterr().err


def test_interrupt_of_other_commands_discards_the_run(monkeypatch, capsys):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("poolwise.traces.choose_format", stopped)
    assert cli.run(["trace", "info", "catalog:example-sacct.txt"]) == 130
    assert "the run was discarded" in capsys.readouterr().err
