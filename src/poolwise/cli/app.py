"""Entry point of the command line: discovers the commands, runs one of them, and turns errors into exit codes.

Exit codes: 0 success, 1 internal error, 2 invalid input, 3 infeasible, 130 interrupted.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import warnings
from typing import Any

import typer

from poolwise.cli.console import INTERRUPTED, error, forget_warnings, warn
from poolwise.cli.contributed import contribute
from poolwise.cli.panels import arrange
from poolwise.cli.usage_errors import UsageProblem, explain_usage
from poolwise.errors import InputError, PolicyError, PoolwiseError
from poolwise.user_code import user_failure
from poolwise.version import __version__

app = typer.Typer(
    name="poolwise",
    help="Plan, simulate and run workloads on disaggregated datacenters.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


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
        importlib.import_module(f"poolwise.cli.{module.name}")
    contribute(app)


def main() -> None:
    """Run the command that the program was called with, and exit with its code."""
    warnings.showwarning = lambda message, *_, **__: warn(str(message))
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code. User errors print no traceback."""
    forget_warnings()
    root = whole_command()
    try:
        code = root(list(arguments), standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except (typer.Abort, KeyboardInterrupt):
        error("interrupted; the run was discarded and no partial file remains: repeat the command to start again")
        return INTERRUPTED
    except UsageProblem as problem:
        explain_usage(problem).show()
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
        message = user_failure(problem)
        if message is None:
            raise
        error(message)
        return PolicyError.exit_code


def whole_command() -> Any:
    """Return the whole command line as one click group, with help pages in panels."""
    _discover()
    root: Any = typer.main.get_command(app)
    arrange(root)
    return root
