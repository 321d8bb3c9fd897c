"""Runs that start before their kernel is compiled: Python code up to some call, then machine code."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from poolwise.engines import compiling
from poolwise.engines.list_scheduling import columns
from poolwise.engines.progress import Stride
from tests.helpers.random_studies import EASY_FAMILY, compare
from tests.helpers.shared_studies import compare_shared

pytestmark = pytest.mark.filterwarnings("ignore:remote latency")
KINDS = (*EASY_FAMILY, "conservative", "kept")


class LateKernel(compiling.InterimKernel):
    """Has machine code from the third call on, as if compilation had finished by then."""

    def __init__(self, *parts: object) -> None:
        super().__init__(*parts)  # type: ignore[arg-type]
        self._calls = count()

    def _is_ready(self, kind: str) -> bool:
        return next(self._calls) >= 2 and super()._is_ready(kind)


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use kernels that are compiled late, and pauses after every fourth pass."""
    for module in ("list_scheduling", "shared_nodes"):
        monkeypatch.setattr(f"poolwise.engines.{module}.replay.InterimKernel", LateKernel)
    monkeypatch.setattr(Stride, "next", lambda self, share, passes: passes + 4)
    yield


@pytest.mark.parametrize("deep", [0, 8, 10_000])
def test_switch_to_machine_code_on_racks_keeps_the_schedule(deep: int, late: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "DEEP_QUEUE", deep)
    for seed in range(deep, deep + 25):
        compare(seed, KINDS, 30)


def test_switch_to_machine_code_on_shared_nodes_keeps_the_schedule(late: None) -> None:
    for seed in range(8):
        compare_shared(seed, pools=seed % 2 > 0)


@pytest.mark.parametrize(
    ("jobs", "two", "persistent"), [(compiling.SHORT + 1, True, True), (10, False, True), (10, True, False)]
)
def test_large_runs_and_private_caches_wait_for_the_kernel(
    jobs: int, two: bool, persistent: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With many jobs, one processor or a private cache, no background process is started."""
    loaded: list[str] = []
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiling, "_has_two_processors", lambda: two)
    monkeypatch.setattr("poolwise.kernels.jit.is_persistent", lambda family: persistent)
    monkeypatch.setattr(compiling, "compile_in_background", pytest.fail)
    kernel = compiling.InterimKernel("list_scheduling", loaded.append, lambda *arrays: len(arrays), jobs)
    assert [kernel("some kind", (1, 2, 3)), kernel("some kind", (1,))] == [3, 1]
    assert loaded == ["some kind"]
