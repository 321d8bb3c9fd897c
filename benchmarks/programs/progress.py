"""Progress of a program: a number in the file that the environment variable PROGRESS names, if it is set."""

import os

_file = os.open(name, os.O_WRONLY | os.O_CREAT, 0o644) if (name := os.environ.get("PROGRESS")) else None


def tell(done: float) -> None:
    """Write the number of finished units of work in one write of fixed width, so that no reader sees half of it."""
    if _file is not None:
        os.pwrite(_file, f"{done:<24.6f}".encode(), 0)
