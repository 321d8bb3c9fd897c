"""Import of an example of Slurm files, as the tests of its parts call it."""

import itertools
from pathlib import Path

from poolwise.cli import app as cli
from tests.helpers.data import DATA

FOLDER = DATA / "slurm-export"
CONF, LOG = FOLDER / "slurm.conf", FOLDER / "sacct.txt"


def imported(out: Path, *words: object, conf: Path = CONF, log: Path = LOG) -> int:
    return cli.run(["import", "slurm", "--conf", str(conf), "--log", str(log), "--out", str(out), *map(str, words)])


def edited(tmp_path: Path, *changes: tuple[str, str]) -> Path:
    """Return a copy of slurm.conf with some texts replaced."""
    for name in ("slurm.conf", "nodes.conf"):
        text = (FOLDER / name).read_text()
        for old, new in changes:
            text = text.replace(old, new)
        (tmp_path / name).write_text(text)
    return tmp_path / "slurm.conf"


def printed_note(lines: list[str], beginning: str) -> str:
    """Return the text of the note with a beginning, from its lines on stderr."""
    first = lines.index(next(line for line in lines if line.startswith(f"note: {beginning}")))
    rest = itertools.takewhile(lambda line: not line.startswith(("note: ", "warning: ")), lines[first + 1 :])
    return " ".join([lines[first].removeprefix(f"note: {beginning}"), *rest])
