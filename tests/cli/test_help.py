"""What each command's help says: examples that run, and no types of flags."""

import os
import shlex
import shutil
import subprocess
import sys

import pytest
import typer

from poolwise.cli import app as cli
from poolwise.cli.examples import PROMPT
from tests.helpers.data import DATA, ROOT

pytestmark = pytest.mark.long

READ_ONLY = ("agent", "live", "node-agent", "serve", "snapshot")
"""Commands whose examples need a cluster, or do not end by themselves: they are read."""
LONG = {("compile",), ("plan",), ("reproduce",), ("profile", "measure")}
"""Their examples take minutes on few cores, or rights: they are read and resolved, up to where the work begins."""

FILES = {
    "area.py": (
        "from dataclasses import dataclass\n\n\n@dataclass(frozen=True)\nclass Area:\n    kind = 'static'\n\n"
        "    def priority(self, queue, snapshot):\n        return -queue.table.requested_s[queue.jobs]\n"
    ),
    "measured.csv": "workload,remote,seconds\nsolver,0.0,1000\nsolver,0.25,1040\nsolver,0.5,1150\nsolver,0.75,1400\n",
}


def commands_of(command, way=()):
    """Each command that does something -> the words that call it."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield way, command
        return
    for name, one in inner.items():
        yield from commands_of(one, (*way, name))


def lines_of(epilog):
    return [line.removeprefix(PROMPT) for line in (epilog or "").split("\n\n") if line.startswith(PROMPT)]


@pytest.fixture(scope="module")
def everything(commands):
    return dict(commands_of(cli.command()))


def test_every_command_has_examples_of_itself(everything):
    assert len(everything) >= 18
    for way, command in everything.items():
        lines = lines_of(command.epilog)
        assert lines, way
        assert shlex.split(lines[-1])[: 1 + len(way)] == ["poolwise", *way]


def test_examples_that_are_not_run_can_be_read(everything):
    for way, command in everything.items():
        for line in lines_of(command.epilog) if way[0] in READ_ONLY else ():
            command.make_context(way[-1], shlex.split(line)[1 + len(way) :])


def test_examples_run_as_they_stand(everything, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    shutil.copy(DATA / "affinity" / "gavel_isolated.csv", tmp_path)
    shutil.copy(ROOT / "docs" / "reproductions" / "irop.csv", tmp_path)
    for way, command in everything.items():
        if way not in LONG and way[0] not in READ_ONLY:
            for line in lines_of(command.epilog):
                code = cli.run(shlex.split(line)[1:])
                assert code == 0, f"{line}\n{capsys.readouterr().err}"


def test_long_examples_reach_their_work(everything, tmp_path, monkeypatch, capsys):
    class InterruptedStart(BaseException):  # an exception would be told as one of the user's own code
        pass

    def work(*_, **__):
        raise InterruptedStart

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("poolwise.plans.plan.run_plan", work)
    monkeypatch.setattr("poolwise.reproductions.reproduction.reproduce", work)
    monkeypatch.setattr("poolwise.cli.compile._load", work)
    monkeypatch.setattr("joblib.Parallel.__call__", work)
    monkeypatch.setattr("poolwise.profiling.control_groups.find_hierarchy", work)
    for way in everything:
        if way in LONG:
            for line in lines_of(everything[way].epilog):
                with pytest.raises(InterruptedStart):
                    cli.run(shlex.split(line)[1:])


def test_flags_show_no_type(everything):
    for way, command in everything.items():
        said = command.get_help(typer.Context(command))
        assert "bool" not in said.lower(), way


@pytest.mark.parametrize(("words", "found"), [("poolwise tr", "trace"), ("poolwise simulate --ord", "--order")])
def test_shells_complete_words(words, found):
    program = "import sys; sys.argv = ['poolwise']; from poolwise.cli import main; main()"
    asked = {"_POOLWISE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | asked, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [found]


@pytest.mark.parametrize("command", ["run", "plan"])
def test_an_interrupt_says_how_to_go_on(command, tmp_path, monkeypatch, capsys):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("poolwise.studies.run", stopped)
    monkeypatch.setattr("poolwise.plans.plan.run_plan", stopped)
    name = {"run": "cerit-pools", "plan": "gpu-share"}[command]
    code = cli.run([command, name, "--out", str(tmp_path / "out")])
    assert code == 130
    assert f"what has finished is kept in {tmp_path}/out" in capsys.readouterr().err


def test_an_interrupt_elsewhere_says_that_nothing_is_kept(monkeypatch, capsys):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("poolwise.traces.choose_format", stopped)
    assert cli.run(["trace", "info", "catalog:example-sacct.txt"]) == 130
    assert "nothing is kept of this run" in capsys.readouterr().err
