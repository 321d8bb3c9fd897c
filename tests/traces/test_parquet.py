"""Parquet files, whole and damaged: read, or refused, and never the end of the program."""

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
def test_a_file_that_would_end_the_program_is_refused_by_name(path: Path) -> None:
    alone = subprocess.run([sys.executable, "-c", parquet._TRY, path], capture_output=True, check=False)
    assert alone.returncode < 0, "Polars has learned to refuse it: break another byte"
    parquet._dies.cache_clear()
    with pytest.raises(InputError, match=r"damaged Parquet file: .* SIGABRT .*memory allocation") as refused:
        read(path, Machine.flat(8), format="table")
    assert refused.value.file == path and refused.value.remedy == "fetch or write the file again"
    assert parquet_names(path) == ()


def test_there_are_three_of_them() -> None:
    assert len(DAMAGED) == 3


def test_what_poolwise_writes_is_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_what_others_write_is_read_by_another_process_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FRAME.write_parquet(tmp_path / "a.parquet")
    run, asked = subprocess.run, []
    monkeypatch.setattr(subprocess, "run", lambda *words, **options: asked.append(words) or run(*words, **options))
    for _ in range(2):
        assert read_parquet(tmp_path / "a.parquet")[0].equals(FRAME)
    assert len(asked) == 1, "once for a file as it stands"
    (tmp_path / "a.parquet").write_bytes(SEALED[:-20] + SEALED[-8:])
    with pytest.raises(InputError, match="not a whole Parquet file"):
        read_parquet(tmp_path / "a.parquet")


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(SEALED) - 1), st.integers(1, 255))
def test_any_byte_that_is_wrong_breaks_the_seal(at: int, change: int) -> None:
    assert is_sealed(SEALED)
    assert not is_sealed(SEALED[:at] + bytes([SEALED[at] ^ change]) + SEALED[at + 1 :])


def test_a_half_of_a_file_is_refused_without_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("another process reads it"))
    for content in (SEALED[: len(SEALED) // 2], b"PAR1", SEALED[:-8] + b"\xff\xff\xff\x7fPAR1"):
        (tmp_path / "a.parquet").write_bytes(content)
        with pytest.raises(InputError, match="does not end as one"):
            read_parquet(tmp_path / "a.parquet")
