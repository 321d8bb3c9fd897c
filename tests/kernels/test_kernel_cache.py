"""Files of compiled kernels: what names them, where they are looked up, and which CPUs load those of a platform wheel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from poolwise.kernels import GENERIC, GENERIC_FEATURES, jit

pytestmark = pytest.mark.skipif(
    bool(jit.config.DISABLE_JIT) or jit.is_plain(jit.numba.__version__), reason="needs Numba 0.68 with its compiler enabled"
)


def add_one(numbers: np.ndarray) -> int:
    """Return the first number plus one."""
    return int(numbers[0]) + 1


def dispatcher(*folders: Path):
    """Return a compiled version of `add_one` with its files in some folders."""
    from poolwise.kernels.kernel_cache import KernelCache

    compiled = jit.njit(add_one)
    compiled._cache = KernelCache(add_one, folders)
    return compiled


def test_types_of_arguments_have_a_file_each_and_are_loaded_again(tmp_path: Path) -> None:
    first = dispatcher(tmp_path)
    assert first(np.array([1])) == 2 and first(np.array([1.5])) == 2
    assert len(list(tmp_path.iterdir())) == 2
    again = dispatcher(tmp_path)
    assert again(np.array([1])) == 2
    assert sum(again.stats.cache_hits.values()) == 1 and not again.stats.cache_misses


def test_files_of_a_later_folder_are_loaded_and_never_written(tmp_path: Path) -> None:
    mine, shipped = tmp_path / "mine", tmp_path / "shipped"
    mine.mkdir()
    shipped.mkdir()
    dispatcher(shipped)(np.array([1]))
    files = {file: file.read_bytes() for file in shipped.iterdir()}
    loaded = dispatcher(mine, shipped)
    assert loaded(np.array([1])) == 2 and not loaded.stats.cache_misses
    assert loaded(np.array([1.0])) == 2  # types that are not shipped are compiled
    assert len(list(mine.iterdir())) == 1 and {file: file.read_bytes() for file in shipped.iterdir()} == files


@pytest.mark.parametrize("missing", ["avx2", "bmi2", ""])
def test_shipped_kernels_need_all_features_of_their_target(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    features = {feature.removeprefix("+"): feature.removeprefix("+") != missing for feature in GENERIC_FEATURES.split(",")}
    monkeypatch.setattr(jit.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(jit.platform, "system", lambda: "Linux")
    monkeypatch.setattr(jit.llvmlite.binding, "get_host_cpu_features", lambda: features)
    jit._runs_shipped.cache_clear()
    assert jit._runs_shipped() == (missing == "")
    jit._runs_shipped.cache_clear()


def test_kernels_compiled_for_the_shipped_target_are_found_under_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """`poolwise compile --target` sets what Numba reads from the environment; the wheel looks for the same fingerprint."""
    monkeypatch.setattr(jit.config, "CPU_NAME", GENERIC)
    monkeypatch.setattr(jit.config, "CPU_FEATURES", GENERIC_FEATURES)
    assert jit._target() == (GENERIC, GENERIC_FEATURES)


def test_markers_of_shipped_kernels_count_as_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "_folders", lambda package: (tmp_path / "mine", tmp_path / "shipped"))
    assert not jit.is_compiled("dispatch", "all kinds")
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped" / "all-kinds.compiled").touch()
    assert jit.is_compiled("dispatch", "all kinds")
