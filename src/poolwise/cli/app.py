"""Puts the commands together, and turns errors into exit codes.

0 success, 1 internal, 2 input, 3 infeasible, 130 interrupted.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import warnings
from typing import Any

import typer

from poolwise.cli.console import INTERRUPTED, error, warn
from poolwise.errors import InputError, PolicyError, PoolwiseError
from poolwise.user_code import failure_in
from poolwise.version import __version__

app = typer.Typer(
    name="poolwise",
    help="Plan, simulate and run workloads on disaggregated datacenters.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

# typer carries its own click, in which the root of all usage errors has no public name
UsageProblem: type[Exception] = typer.BadParameter.__mro__[2]


def _version(show: bool) -> None:
    if show:
        print(f"poolwise {__version__}")
        raise typer.Exit


@app.callback()
def _root(version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version.")) -> None:
    pass


def _discover() -> None:
    package = importlib.import_module("poolwise.cli")
    for module in pkgutil.iter_modules(package.__path__):
        command = importlib.import_module(f"poolwise.cli.{module.name}")
        if hasattr(command, "register"):
            command.register(app)


def main() -> None:
    """Run a command and exit with its code."""
    warnings.showwarning = lambda message, *_, **__: warn(str(message))
    _discover()
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run a command; returns the exit code. Errors of the user's making show no traceback."""
    try:
        code = command()(arguments, standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except (typer.Abort, KeyboardInterrupt):
        error("interrupted; nothing is kept of this run and no file is half written: give the same command to begin again")
        return INTERRUPTED
    except UsageProblem as problem:
        problem.show()  # type: ignore[attr-defined]  # see UsageProblem
        return 2
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except PoolwiseError as problem:
        error(str(problem))
        return problem.exit_code
    except OSError as problem:
        failure = InputError(
            problem.strerror or str(problem), file=problem.filename, remedy="check the path and its permissions"
        )
        error(str(failure))
        return failure.exit_code
    except Exception as problem:
        said = failure_in(problem)
        if said is None:
            raise
        error(said)
        return PolicyError.exit_code


def command() -> Any:
    """The whole command line; flags show no type in their help, since they take no value."""
    made: Any = typer.main.get_command(app)
    waiting = [made]
    while waiting:
        one = waiting.pop()
        waiting += getattr(one, "commands", {}).values()
        for parameter in (*one.params, one.get_help_option(typer.Context(one))):
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
    return made
