"""Fixtures of all tests, and the examples that property tests draw."""

import gc
import os
import re
import secrets
import zlib
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from poolwise.cli import app
from poolwise.version import __version__
from tests.helpers.small_study import write

EXAMPLES = os.environ.get("POOLWISE_EXAMPLES")
"""Factor on the number of examples of each property test, which are then new ones."""
FAST = 0.15
"""The factor without one: `make test` draws a seventh of the examples, but not fewer than ten."""
CI = os.environ.get("CI") == "true"

ALL_LONG = re.compile(r"^pytestmark = .*\bpytest\.mark\.long\b", re.MULTILINE)
"""Mark of a file in which every test is long."""

# No limit may depend on the speed of the machine.
settings.register_profile(
    "poolwise",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=False,
    database=None if CI else settings.default.database,
    print_blob=True,
)
settings.load_profile("poolwise")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed of property tests: a new one for more examples, the same for a release in CI, else Hypothesis's own.

    The fixed seed of CI makes a failure a consequence of the change.
    """
    if config.option.hypothesis_seed is None and (EXAMPLES or CI):
        config.option.hypothesis_seed = str(secrets.randbits(32) if EXAMPLES else zlib.crc32(__version__.encode()))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the import of files in which every test is long when the long tests are deselected."""
    if config.option.markexpr != "not long" or collection_path.suffix != ".py":
        return None
    return True if ALL_LONG.search(collection_path.read_text("utf-8")) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None]:
    """Collect garbage rarely, and never in the imported modules and the collected tests, which stay until the end.

    With Python's defaults, parsing all sources takes four times as long.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)
        gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print how to repeat new or failing examples."""
    if config.option.hypothesis_seed is not None and (EXAMPLES or terminalreporter.stats.get("failed")):
        repeat = f"POOLWISE_EXAMPLES={EXAMPLES or 1} pytest --hypothesis-seed={config.option.hypothesis_seed}"
        terminalreporter.write_line(f"repeat the examples of property tests with: {repeat}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the property tests, scale their number of examples, and run tests that share a fixture in one worker."""
    scaled = set()
    for item in items:
        if isinstance(item, pytest.Function) and _shares_a_fixture(item) and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
        test = getattr(item.obj, "__func__", item.obj) if isinstance(item, pytest.Function) else None
        if not getattr(test, "is_hypothesis_test", False):
            continue
        item.add_marker("property")
        if test not in scaled:
            scaled.add(test)
            own = test._hypothesis_internal_use_settings or settings.default
            test._hypothesis_internal_use_settings = settings(
                own,
                max_examples=_examples(own.max_examples),
                suppress_health_check=[*own.suppress_health_check, HealthCheck.too_slow],
            )


def _shares_a_fixture(item: pytest.Function) -> bool:
    """Return whether a test uses a fixture that each worker sets up once for a file."""
    used = (definition for name in item.fixturenames for definition in item._fixtureinfo.name2fixturedefs.get(name, ()))
    return any(definition.scope == "module" for definition in used)


def _examples(full: int) -> int:
    """Return how many of a test's examples are drawn."""
    return max(1, round(full * float(EXAMPLES))) if EXAMPLES else max(min(full, 10), round(full * FAST))


@pytest.fixture(scope="session")
def commands() -> None:
    """Every command of the command line is known."""
    if not app.app.registered_commands:
        app._discover()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a study that a test may change."""
    return write(tmp_path)


@pytest.fixture(scope="module")
def kept_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a study that tests share and leave unchanged."""
    return write(tmp_path_factory.mktemp("study"))
