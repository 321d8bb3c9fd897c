"""Command line of Poolwise. Each module adds a command or group to `app` when it is imported."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run a command and exit with its code; the code is 130 if Ctrl-C arrives while the program is still loading."""
    try:
        from poolwise.cli.app import main as run_command

        run_command()
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted while loading; nothing was started\n")
        sys.exit(130)
