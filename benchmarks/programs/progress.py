"""How far a program is, for whoever watches it: a number in the file that the variable PROGRESS names, if there is one."""

import os

_file = os.open(name, os.O_WRONLY | os.O_CREAT, 0o644) if (name := os.environ.get("PROGRESS")) else None


def tell(done: float) -> None:
    """Write how many units of work are done: one write of a fixed width, so that nobody reads half of it."""
    if _file is not None:
        os.pwrite(_file, f"{done:<24.6f}".encode(), 0)
