"""Progress reporting: a number in the file named by the environment variable PROGRESS, if it is set."""

import os

_file = os.open(name, os.O_WRONLY | os.O_CREAT, 0o644) if (name := os.environ.get("PROGRESS")) else None


def report(done: float) -> None:
    """Write the number of completed units of work, in one write of a fixed width, so that readers never see a partial value."""
    if _file is not None:
        os.pwrite(_file, f"{done:<24.6f}".encode(), 0)
