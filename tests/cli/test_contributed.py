"""Commands of other distributions: contributed by entry points, and replaced by an error where they are missing or broken."""

import importlib
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from poolwise.cli import app as cli
from poolwise.cli import contributed
from poolwise.cli.contributed import COMMANDS, contribute
from poolwise.cli.panels import OTHERS, PANELS
from poolwise.distributions import DISTRIBUTIONS
from poolwise.errors import PoolwiseError
from poolwise.version import __version__
from tests.helpers.data import ROOT

MODULE = """
from poolwise.cli.app import app
from poolwise.cli.examples import command


@command(app, "poolwise elsewhere")
def elsewhere() -> None:
    '''Print a line.'''
    print("from elsewhere")
"""
POINTS = "[poolwise.commands]\nelsewhere = poolwise_elsewhere_command\nbroken = poolwise_gone\n"
PROJECTS = [tomllib.loads(file.read_text(encoding="utf-8"))["project"] for file in ROOT.glob("packages/*/pyproject.toml")]


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a distribution with a command and with a command that cannot be imported."""
    (tmp_path / "poolwise_elsewhere_command.py").write_text(MODULE)
    info = tmp_path / "poolwise_elsewhere-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: poolwise-elsewhere\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    monkeypatch.setattr(cli.app, "registered_commands", [*cli.app.registered_commands])
    yield
    sys.modules.pop("poolwise_elsewhere_command", None)


def without_distributions(monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    """Return a command line to which no distribution contributes."""
    monkeypatch.setattr(contributed, "entry_points", lambda group: [])
    app = typer.Typer()
    app.add_typer(typer.Typer(), name="profile")
    contribute(app)
    contribute(app)  # as in a process that runs several commands
    return app


@pytest.mark.usefixtures("commands", "distribution")
def test_contributed_command_runs_and_is_listed_in_a_panel(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["elsewhere"]) == 0
    assert capsys.readouterr().out == "from elsewhere\n"
    assert cli.whole_command().commands["elsewhere"].rich_help_panel == OTHERS


@pytest.mark.usefixtures("commands", "distribution")
def test_broken_command_is_an_error_with_its_distribution_and_others_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["broken", "--any", "argument"]) == 1
    message = capsys.readouterr().err
    assert "cannot load the command 'broken' of poolwise-elsewhere" in message and "update or uninstall" in message
    assert cli.run(["list", "orders"]) == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_missing_command_states_how_to_install_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app, distribution = without_distributions(monkeypatch), COMMANDS[name][0]
    done = CliRunner().invoke(app, [*name.split("."), "irop", "--quick", "--set", "seeds=5"])
    assert isinstance(done.exception, PoolwiseError) and done.exception.exit_code == 1
    problem = f"`poolwise {name.replace('.', ' ')}` requires {distribution}, which is not installed"
    assert str(done.exception) == f"{problem}\n  remedy: pip install {distribution}"


def test_missing_commands_are_listed_once_with_their_help(monkeypatch: pytest.MonkeyPatch) -> None:
    app = without_distributions(monkeypatch)
    assert [command.name for command in app.registered_commands] == [name for name in COMMANDS if "." not in name]
    text = "".join(CliRunner().invoke(app, [*group, "--help"]).output for group in ([], ["profile"]))
    assert all(help_ in text for _, help_ in COMMANDS.values())


@pytest.mark.usefixtures("commands")
def test_help_of_missing_commands_equals_that_of_the_distribution() -> None:
    for name, (_, help_) in COMMANDS.items():
        command = cli.whole_command()
        for part in name.split("."):
            command = command.commands[part]
        assert command.help.partition("\n")[0] == help_
    assert {name.partition(".")[0] for name in COMMANDS} <= {name for names in PANELS.values() for name in names}


@pytest.mark.usefixtures("commands")
def test_list_of_reproductions_states_how_to_install_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("poolwise.registry.entry_points", lambda **_: [])
    monkeypatch.setattr("poolwise.registry._installed", lambda *_: frozenset())
    assert cli.run(["list", "reproductions"]) == 1
    assert "pip install poolwise-reproductions" in capsys.readouterr().err


def test_distributions_share_version_license_and_core() -> None:
    core = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {project["name"] for project in PROJECTS} == {*DISTRIBUTIONS.values()}
    assert {project["version"] for project in [core, *PROJECTS]} == {__version__}
    assert all(f"poolwise=={__version__}" in project["dependencies"] for project in PROJECTS)
    assert all(file.read_bytes() == (ROOT / "LICENSE").read_bytes() for file in ROOT.glob("packages/*/LICENSE"))


def test_core_imports_no_other_distribution_at_run_time() -> None:
    code = f"import sys, poolwise, poolwise.cli.run; assert not {{*{[*DISTRIBUTIONS]}}} & {{*sys.modules}}"
    subprocess.run([sys.executable, "-c", code], check=True)
