"""Run the command line: python -m poolwise."""

from poolwise.cli import main

main()
