"""Output on a terminal: at most 80 columns, lines break between words only; sentences stay whole in a pipe."""

import shlex

import pytest
from rich.console import Console

from poolwise.cli import app as cli
from poolwise.cli import console
from poolwise.cli.console import wrapped
from poolwise.cli.tables import plain_table, print_table

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
    table = plain_table("job", "held back by", "needed", "in the way", title=SENTENCE)
    for k in range(5):
        table.add_row(f"job {k}", SENTENCE, f"{k} GiB", f"job {10**k}, reserved after 2 h 3 min")
    print_table(table)
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= width for line in lines[1:])
    words = " ".join(lines).split()
    assert {*SENTENCE.split(), "reserved", "10000,"} <= {*words}


def test_table_that_cannot_fit_is_printed_as_blocks(monkeypatch, capsys) -> None:
    monkeypatch.setattr(console.out, "width", 20)
    table = plain_table("name", "placement")
    table.add_row("first", "rack0.node17:nodes=1;rack1.pool:memory=1")
    print_table(table)
    assert capsys.readouterr().out == "first\n  placement: rack0.node17:nodes=1;rack1.pool:memory=1\n"


@pytest.mark.parametrize(
    "words",
    [
        "list placements",
        "list formats",
        "trace info catalog:example-sacct.txt --machine cerit-racks",
        "simulate catalog:example-sacct.txt --machine cerit-racks",
        "explain log catalog:example-sacct.txt 48020 --machine cerit-racks",
        "validate cerit-pools",
        "place batch-150x1200 --method first-fit",
        "forecast backtest catalog:example-sacct.txt --machine cerit-racks --instants 5 --samples 2",
    ],
)
def test_commands_fit_a_terminal(words: str, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("out", "err"):
        monkeypatch.setattr(getattr(console, name), "_force_terminal", True)
        monkeypatch.setattr(getattr(console, name), "_color_system", None)
        monkeypatch.setattr(getattr(console, name), "width", 80)
    assert cli.run(shlex.split(words)) == 0
    shown = capsys.readouterr()
    lines = [line for line in (shown.out + shown.err).splitlines() if "\x1b[" not in line and "\r" not in line]
    wide = [line for line in lines if len(line.rstrip()) > 80 and max(map(len, line.split())) < 70]
    assert lines and wide == []
