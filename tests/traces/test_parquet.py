"""Tests of complete and damaged Parquet files: they are read or rejected, and never terminate the program."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.errors import InputError
from poolwise.model import Machine, Workload
from poolwise.traces import parquet, read
from poolwise.traces.parquet import is_sealed, parquet_names, read_parquet, sealed_parquet
from poolwise.traces.table import write_table

DAMAGED = sorted((Path(__file__).parents[1] / "data" / "parquet").glob("*.parquet"))
"""Job tables with one wrong byte: the length of a run, of which Polars asks for 2^61 bytes."""
FRAME = pl.DataFrame({"submit_ns": range(5), "nodes": [1] * 5, "duration_ns": [7] * 5, "text.user": list("abcde")})
SEALED = sealed_parquet(FRAME, {"kept": "yes"})


@pytest.mark.parametrize("path", DAMAGED, ids=lambda path: path.stem)
def test_file_that_crashes_polars_is_rejected(path: Path) -> None:
    alone = subprocess.run([sys.executable, "-c", parquet._PROBE, path], capture_output=True, check=False)
    assert alone.returncode < 0, "Polars now rejects it: break another byte"
    parquet._crash_problem.cache_clear()
    with pytest.raises(InputError, match=r"damaged Parquet file: .* SIGABRT .*memory allocation") as refused:
        read(path, Machine.flat(8), format="table")
    assert refused.value.file == path and refused.value.remedy == "fetch or write the file again"
    assert parquet_names(path) == ()


def test_three_crashing_files_exist() -> None:
    assert len(DAMAGED) == 3


def test_file_with_checksum_is_read_directly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("another process reads it")

    monkeypatch.setattr(subprocess, "run", never)
    (tmp_path / "a.parquet").write_bytes(SEALED)
    frame, metadata = read_parquet(tmp_path / "a.parquet")
    assert frame.equals(FRAME) and metadata["kept"] == "yes"
    workload = Workload.of(np.arange(3), np.full(3, 7), requests={"nodes": np.ones(3, dtype=np.int64)})
    write_table(workload, tmp_path / "jobs.parquet")
    assert len(read(tmp_path / "jobs.parquet", Machine.flat(8))) == 3
    assert sealed_parquet(FRAME, {"kept": "yes"}) == SEALED


def test_foreign_file_is_first_read_by_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FRAME.write_parquet(tmp_path / "a.parquet")
    run, calls = subprocess.run, []
    monkeypatch.setattr(subprocess, "run", lambda *words, **options: calls.append(words) or run(*words, **options))
    for _ in range(2):
        assert read_parquet(tmp_path / "a.parquet")[0].equals(FRAME)
    assert len(calls) == 1, "once per file content"
    (tmp_path / "a.parquet").write_bytes(SEALED[:-20] + SEALED[-8:])
    with pytest.raises(InputError, match="incomplete or damaged Parquet file"):
        read_parquet(tmp_path / "a.parquet")


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(SEALED) - 1), st.integers(1, 255))
def test_any_changed_byte_breaks_the_checksum(at: int, change: int) -> None:
    assert is_sealed(SEALED)
    assert not is_sealed(SEALED[:at] + bytes([SEALED[at] ^ change]) + SEALED[at + 1 :])


def test_truncated_file_is_rejected_without_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("another process reads it"))
    for content in (SEALED[: len(SEALED) // 2], b"PAR1", SEALED[:-8] + b"\xff\xff\xff\x7fPAR1"):
        (tmp_path / "a.parquet").write_bytes(content)
        with pytest.raises(InputError, match="beginning or end is missing"):
            read_parquet(tmp_path / "a.parquet")
