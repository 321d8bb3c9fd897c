"""Cache folders of compiled kernels: location, invalidation and fallback."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from poolwise.arrays import IntArray
from poolwise.kernels import jit

pytestmark = pytest.mark.long


@pytest.fixture
def fresh_folder():
    forget()
    yield
    forget()


def forget() -> None:
    """Forget the sources that were read and the cache folders that were chosen."""
    jit._hashed_sources.cache_clear()
    jit.cache_folder.cache_clear()


def test_cache_folder_is_named_by_the_kernel_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_folder: None
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = jit.cache_folder("list_scheduling")
    assert first.parent == tmp_path / "poolwise"
    assert first.is_dir()
    copied = tmp_path / "kernels"
    shutil.copytree(Path(jit.__file__).parent, copied)
    monkeypatch.setattr(jit, "__file__", str(copied / "jit.py"))
    forget()
    assert jit.cache_folder("list_scheduling") == first, "checkouts with the same sources share their kernels"
    (copied / "batch" / "fill.py").write_text("")
    forget()
    assert jit.cache_folder("list_scheduling") == first  # sources of other kernel packages do not matter
    changed = copied / "list_scheduling" / "racks.py"
    changed.write_text(changed.read_text() + "\n")
    forget()
    second = jit.cache_folder("list_scheduling")
    assert second != first
    (copied / "numba_internals.py").write_text("")  # affects all kernel packages
    forget()
    assert jit.cache_folder("list_scheduling") not in (first, second)


def test_kernel_packages_import_only_the_packages_they_build_on() -> None:
    kernels = Path(jit.__file__).parent
    for package in (folder for folder in kernels.iterdir() if (folder / "__init__.py").is_file()):
        for source in package.glob("*.py"):
            imported = re.findall(r"poolwise\.kernels\.(\w+)", source.read_text())
            assert set(imported) <= {"jit", package.name, *jit.BUILDS_ON.get(package.name, ())}, source


def test_unwritable_cache_folder_is_replaced_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_folder: None
) -> None:
    (tmp_path / "poolwise").write_text("a file where the folder should be")
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.warns(UserWarning, match="cannot write"):
        folder = jit.cache_folder("list_scheduling")
    assert folder.is_dir()
    assert tmp_path not in folder.parents
    shutil.rmtree(folder.parent)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["list", "orders"]])
def test_commands_without_kernels_do_not_import_numba(arguments: list[str]) -> None:
    script = (
        "import sys\n"
        "from poolwise.cli import main\n"
        f"sys.argv = ['poolwise', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "assert 'numba' not in sys.modules and 'llvmlite' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, env={**os.environ, "NO_COLOR": "1"})


@pytest.mark.parametrize(
    ("version", "plain"),
    [("0.68.0", False), ("0.68.1", False), ("0.67.1", True), ("0.69.0", True), ("1.0", True), ("0.680.0", True)],
)
def test_numba_internals_are_used_only_with_tested_versions(
    version: str, plain: bool, monkeypatch: pytest.MonkeyPatch, fresh_folder: None
) -> None:
    monkeypatch.delenv(jit.PLAIN, raising=False)
    assert jit.is_plain(version) == plain
    monkeypatch.setattr(jit.numba, "__version__", version)
    ours = jit.cache_folder("dispatch")
    monkeypatch.setenv(jit.PLAIN, "1")
    assert jit.is_plain(version)
    forget()
    assert (jit.cache_folder("dispatch") == ours) == plain, "kernels of the two ways of compilation have separate caches"


PLAINLY = """
import sys
from poolwise.engines import simulate
from poolwise.engines.dispatch.replay import load
from poolwise.schedulers.dispatch import Dispatch
from tests.helpers.random_dispatch import TIERED, policy_of, study
from tests.helpers.random_studies import difference

import numba
numba.__version__ = "VERSION"
load()
for seed in range(8):
    case = study(seed, 40).case()
    for entry in TIERED:
        how = Dispatch(policy_of(entry))
        runs = [
            simulate(case.workload, case.machine, how, model=case.model, seed=seed, engine=engine).schedule
            for engine in ("reference", "compiled")
        ]
        assert difference(*runs) == "", (seed, entry)
from poolwise.kernels.dispatch.replay import replay
assert numba.config.DISABLE_JIT or len(replay.signatures) == 1
assert "poolwise.kernels.numba_internals" not in sys.modules
"""


def test_plain_kernels_produce_the_same_schedules(tmp_path: Path) -> None:
    """With an untested version of Numba, its internals are not imported."""
    path = os.pathsep.join([*sys.path, str(Path(__file__).parents[1] / "differential")])
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONWARNINGS": "ignore"}
    script = PLAINLY.replace("VERSION", "99.0")
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


def test_importing_the_engine_does_not_import_numba() -> None:
    script = "import sys, poolwise.engines, poolwise.kernels; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def _read(numbers: IntArray, k: int) -> int:
    return int(numbers[k])


def test_negative_indices_do_not_wrap_in_kernels() -> None:
    """Index -1 reads the number before a view, not its last one: the kernel omits the comparison."""
    numbers = np.array([10, 11, 12])
    assert _read(numbers[1:], -1) == 12
    if not (jit.config.DISABLE_JIT or jit.is_plain(jit.numba.__version__)):
        assert jit.kernel(_read)(numbers[1:], -1) == 10
