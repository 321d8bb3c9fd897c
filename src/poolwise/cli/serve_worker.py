"""Worker process of `poolwise serve`: python -m poolwise.cli.serve_worker FOLDER."""

from __future__ import annotations

if __name__ == "__main__":
    from poolwise.cli.app import main, whole_command
    from poolwise.serve.worker import work

    work(main, whole_command)
