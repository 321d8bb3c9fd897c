"""The command line. One file a command in this folder, found by discovery; each defines `register(app)`."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run a command and exit with its code, 130 where it is interrupted while the program is still being loaded."""
    try:
        from poolwise.cli.app import main as run_command

        run_command()
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted before anything was begun\n")
        sys.exit(130)
