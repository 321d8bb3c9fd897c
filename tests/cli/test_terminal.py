"""Output on a terminal: at most 80 columns, lines break between words only; sentences stay whole in a pipe."""

import re
import shlex
from io import StringIO

import pytest
from rich.console import Console

from poolwise.cli import app as cli
from poolwise.cli import console
from poolwise.cli.console import wrapped
from poolwise.cli.tables import print_table
from poolwise.presentation.table import Table

SENTENCE = "the reference engine runs this because the scheduler file asks for one scheduling pass per event of the run"


def on_terminal(width: int = 80) -> Console:
    return Console(force_terminal=True, width=width, color_system=None)


def test_sentences_wrap_between_words_on_a_terminal() -> None:
    lines = wrapped(f"  {SENTENCE}", on_terminal(40)).split("\n")
    assert len(lines) > 2 and all(len(line) <= 40 and line.startswith("  ") for line in lines)
    assert " ".join(" ".join(lines).split()) == SENTENCE


def test_sentences_stay_whole_in_a_pipe() -> None:
    assert wrapped(SENTENCE, Console(force_terminal=False, width=40)) == SENTENCE


def test_long_words_are_not_broken() -> None:
    path = "/a/very-long/folder" * 6
    assert path in wrapped(f"report: {path}", on_terminal(40)).split("\n")


@pytest.mark.parametrize("width", [80, 60, 40])
def test_tables_fit_and_break_between_words(width: int, monkeypatch, capsys) -> None:
    monkeypatch.setattr(console.out, "width", width)
    rows = [[f"job {k}", SENTENCE, f"{k} GiB", f"job {10**k}, reserved after 2 h 3 min"] for k in range(5)]
    print_table(Table(SENTENCE, ["job", "held back by", "needed", "in the way"], rows))
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= width for line in lines[2:])
    words = " ".join(lines).split()
    assert {*SENTENCE.split(), "reserved", "10000,"} <= {*words}


def test_table_that_cannot_fit_is_printed_as_blocks(monkeypatch, capsys) -> None:
    monkeypatch.setattr(console.out, "width", 20)
    print_table(Table("", ["name", "placement"], [["first", "rack0.node17:nodes=1;rack1.pool:memory=1"]]))
    assert capsys.readouterr().out == "first\n  placement: rack0.node17:nodes=1;rack1.pool:memory=1\n"


def test_block_of_a_row_that_starts_with_a_number_names_it(monkeypatch, capsys) -> None:
    monkeypatch.setattr(console.out, "width", 20)
    print_table(Table("", ["bf_interval", "placement"], [["60", "rack0.node17:nodes=1;rack1.pool:memory=1"]]))
    assert capsys.readouterr().out.startswith("bf_interval 60\n  placement: ")


SMALL = "--set workload.jobs=300 --set measure.warm_up=50 --jobs 1"
SIMULATE = "simulate catalog:example-sacct.txt --machine cerit-racks"


PROGRESS = re.compile(r"\s*\[[\d,]+/[\d,]+\]")


def shown_at(width: int, words: str, monkeypatch, capsys) -> str:
    """Run a command on a terminal; return what it prints, without progress: bars, and lines of runs over ten seconds."""
    for name in ("out", "err"):
        monkeypatch.setattr(getattr(console, name), "_force_terminal", True)
        monkeypatch.setattr(getattr(console, name), "_color_system", None)
        monkeypatch.setattr(getattr(console, name), "width", width)
    assert cli.run(shlex.split(words)) == 0
    shown = capsys.readouterr()
    lines = (shown.out + shown.err).splitlines()
    return "\n".join(line for line in lines if "\x1b[" not in line and "\r" not in line and not PROGRESS.match(line))


@pytest.mark.parametrize(
    "words",
    [
        "list placements",
        "list formats",
        "trace info catalog:example-sacct.txt --machine cerit-racks",
        SIMULATE,
        "explain log catalog:example-sacct.txt 48280 --machine cerit-racks",
        "explain log catalog:example-sacct.txt 48294 --machine cerit-racks --all",
        "validate cerit-pools",
        "place batch-150x1200 --method first-fit",
        "forecast backtest catalog:example-sacct.txt --machine cerit-racks --instants 5 --samples 2",
        "compare fcfs.csv sjf.csv",
        pytest.param(f"run cerit-pools {SMALL} --set \"vary.scheduler.order=['fcfs','fm']\"", marks=pytest.mark.long),
        f"plan cerit-pools {SMALL} --set plan.certainty.over=nothing --set plan.certainty.min=1 "
        "--set \"plan.size.1.values=['32 GiB']\"",
        pytest.param("plan gpu-share --set plan.seeds=2 --jobs 1", marks=pytest.mark.long),
    ],
)
def test_commands_fit_a_terminal_and_break_no_word(words: str, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    if words.startswith("compare"):
        for order in ("fcfs", "sjf"):
            assert cli.run(shlex.split(f"{SIMULATE} --order {order} --schedule {order}.csv")) == 0
        capsys.readouterr()
    wide, narrow = (shown_at(width, words, monkeypatch, capsys) for width in (10_000, 80))
    assert max(len(line.rstrip()) for line in narrow.splitlines() if str(tmp_path) not in line) <= 80 and "…" not in narrow
    assert {word for word in wide.split() if word.isalpha()} <= {*narrow.split()}
    if "place" in words or "compare" in words:
        assert narrow.splitlines()[0] and len(narrow.splitlines()) < 65


def test_long_table_shows_its_first_rows_and_how_to_see_all(capsys) -> None:
    table = Table("", ["job", "nodes"], [[f"job {k}", f"{k}"] for k in range(100)], "Measured.", chosen=1)
    print_table(table, 40, "--csv FILE lists them")
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:3] == ["job 0       0", "job 1       1"] and lines[40:] == [
        "job 39     39", "60 more rows: --csv FILE lists them", "Measured."
    ]  # fmt: skip


def test_styles_are_for_terminals_only(capsys) -> None:
    table = Table("Runs", ["run", "wait"], [["a", "1 h"], ["b", "25 min"]], "Means.", chosen=0)
    print_table(table)
    assert capsys.readouterr().out == "\nRuns\nrun    wait\na       1 h\nb    25 min\nMeans.\n"


@pytest.mark.parametrize(("no_color", "styled"), [("", True), ("1", False)])
def test_no_color_leaves_no_style(no_color: str, styled: bool, monkeypatch) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    screen = StringIO()
    made = console.styled_console(file=screen, force_terminal=True, width=80, _environ={"TERM": "xterm"})
    made.print("bold", style="bold")
    assert ("\x1b[" in screen.getvalue()) is styled
