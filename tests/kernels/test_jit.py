"""Where compiled kernels are kept, and that nothing stale survives."""

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


@pytest.fixture
def fresh_folder():
    jit.folder.cache_clear()
    yield
    jit.folder.cache_clear()


def test_folder_is_the_users_and_named_by_the_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_folder: None
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = jit.folder("list_scheduling")
    assert first.parent == tmp_path / "poolwise"
    assert first.is_dir()
    copied = tmp_path / "kernels"
    shutil.copytree(Path(jit.__file__).parent, copied)
    monkeypatch.setattr(jit, "__file__", str(copied / "jit.py"))
    jit.folder.cache_clear()
    (copied / "batch" / "fill.py").write_text("")
    assert jit.folder("list_scheduling") == first  # another family's sources do not matter
    changed = copied / "list_scheduling" / "racks.py"
    changed.write_text(changed.read_text() + "\n")
    jit.folder.cache_clear()
    second = jit.folder("list_scheduling")
    assert second != first
    (copied / "library.py").write_text("")  # how all families are compiled
    jit.folder.cache_clear()
    assert jit.folder("list_scheduling") not in (first, second)


def test_no_family_imports_another() -> None:
    kernels = Path(jit.__file__).parent
    for family in (folder for folder in kernels.iterdir() if (folder / "__init__.py").is_file()):
        for source in family.glob("*.py"):
            imported = re.findall(r"poolwise\.kernels\.(\w+)", source.read_text())
            assert set(imported) <= {"jit", family.name}, source


def test_a_folder_that_cannot_be_written_is_replaced_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_folder: None
) -> None:
    (tmp_path / "poolwise").write_text("a file where the folder should be")
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.warns(UserWarning, match="cannot be written"):
        folder = jit.folder("list_scheduling")
    assert folder.is_dir()
    assert tmp_path not in folder.parents
    shutil.rmtree(folder.parent)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["list", "orders"]])
def test_commands_that_need_no_kernel_do_not_import_numba(arguments: list[str]) -> None:
    script = (
        "import sys\n"
        "from poolwise.cli import main\n"
        f"sys.argv = ['poolwise', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "assert 'numba' not in sys.modules and 'llvmlite' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, env={**os.environ, "NO_COLOR": "1"})


def test_importing_the_engine_does_not_import_numba() -> None:
    script = "import sys, poolwise.engines, poolwise.kernels; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def _read(numbers: IntArray, k: int) -> int:
    return int(numbers[k])


def test_kernels_do_not_count_from_the_end_of_an_array() -> None:
    """What stands before the first number of a view is read, not its last: the kernel leaves out the comparison."""
    numbers = np.array([10, 11, 12])
    assert _read(numbers[1:], -1) == 12
    if not jit.config.DISABLE_JIT:
        assert jit.kernel(_read)(numbers[1:], -1) == 10
