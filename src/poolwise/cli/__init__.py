"""The command line. One file a command in this folder, found by discovery; each defines `register(app)`."""

from poolwise.cli.app import main

__all__ = ["main"]
