import gzip
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise import catalog
from poolwise.cli import app as cli
from poolwise.model import Machine
from poolwise.traces import read
from poolwise.traces.convert import to_swf
from poolwise.traces.swf_rows import (
    ALLOCATED,
    REQUESTED_MEMORY,
    REQUESTED_PROCESSORS,
    USED_MEMORY,
    SwfRows,
    read_rows,
    write_swf_rows,
)
from tests.helpers.data import LOGS, available_cases

NOTE = " Note: converted by Poolwise: "


@given(
    st.lists(
        st.tuples(
            st.sampled_from([-1, 0, 1, 7, 64]), st.sampled_from([-1, 0, 3, 64]), st.sampled_from([-1, 0, 1, 1023, 2**39])
        ),
        min_size=1,
        max_size=6,
    )
)
@settings(max_examples=30, deadline=None)
def test_bytes_per_job_are_converted_to_kilobytes_per_processor(jobs):
    values = np.full((len(jobs), 18), 5.0)
    values[:, 0] = np.arange(len(jobs))
    values[:, [ALLOCATED, REQUESTED_PROCESSORS, REQUESTED_MEMORY]] = jobs
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.swf", Path(folder) / "out.swf.gz"
        write_swf_rows(SwfRows(source, np.arange(len(jobs)), (" Version: 2.2",), values), source)
        rows, changed = to_swf(source, target, memory_bytes_per_job=True, comments=["Acknowledge: me"])
        got = read_rows(target)
    assert rows == len(jobs)
    assert got.comments[:2] == (" Version: 2.2", " Acknowledge: me")
    assert got.comments[2].startswith(NOTE)
    others = [k for k in range(18) if k not in (USED_MEMORY, REQUESTED_MEMORY)]
    assert np.array_equal(got.values[:, others], values[:, others])
    assert set(got.values[:, USED_MEMORY]) == {-1}
    expected, lost = [], 0
    for allocated, requested, size in jobs:
        processors = max(allocated, requested)
        expected.append(-(-size // (1024 * processors)) if size > 0 and processors > 0 else -1)
        lost += size > 0 and processors <= 0
    assert got.values[:, REQUESTED_MEMORY].tolist() == expected
    assert changed.get("requested memory set to unknown, because the processors are unknown", 0) == lost


def test_rows_are_unchanged_without_options(tmp_path):
    source = LOGS / "hpc2n-2002.swf.gz"
    rows, changed = to_swf(source, tmp_path / "out.swf")
    before, after = read_rows(source), read_rows(tmp_path / "out.swf")
    assert (rows, changed) == (len(before), {})
    assert np.array_equal(before.values, after.values)
    assert before.comments == after.comments


@pytest.fixture(scope="module")
def shipped():
    return catalog.find("traces", "cerit-2013.swf.gz")


def restore_original(shipped, path):
    """Undo the conversion of the shipped log: bytes per job, a constant for the used memory, columns 19 to 21, no header."""
    lines = []
    for row in read_rows(shipped).values.astype(np.int64).tolist():
        row[USED_MEMORY] = 1024
        if row[REQUESTED_MEMORY] > 0:
            row[REQUESTED_MEMORY] *= 1024 * max(row[ALLOCATED], row[REQUESTED_PROCESSORS])
        lines.append(" ".join([*map(str, row), "{1129,1129}", "q_1d", "1:ppn=64:x86_64:cl_zewura#excl"]))
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))
    return path


@pytest.mark.parametrize(
    "original", ["undone", *(path for (path,) in available_cases(("hpc_cerit_wagap_2013/wagap-2013.swf.gz",)))]
)
def test_shipped_log_is_the_converted_original(original, shipped, tmp_path, commands):
    """Convert the original; it may not be redistributed, so without it undo and repeat the conversion of the shipped log."""
    source = restore_original(shipped, tmp_path / "wagap-2013.swf.gz") if original == "undone" else original
    comments = [comment.strip() for comment in read_rows(shipped).comments if not comment.startswith(NOTE)]
    target = tmp_path / "made.swf.gz"
    options = [word for comment in comments for word in ("--comment", comment)]
    command = ["trace", "convert", str(source), str(target), "--extra-columns", "3", "--memory-bytes-per-job", *options]
    assert cli.run(command) == 0
    made, ours = (gzip.decompress(path.read_bytes()).decode().split("\n") for path in (target, shipped))
    assert len(made) == len(ours)
    for line, (converted, other) in enumerate(zip(made, ours, strict=True), start=1):
        assert converted == other, line


def test_shipped_log_has_credits_and_reproducible_bytes(shipped):
    header = "\n".join(read_rows(shipped).comments)
    for credit in ("Klusacek", "CERIT-SC", "MetaCentrum", "columns 19 to 21 left out", "bytes per job into KB per processor"):
        assert credit in header
    head = shipped.read_bytes()[:10]
    assert head[4:8] == bytes(4), "the gzip header contains a time"
    assert not head[3] & 8, "the gzip header contains a file name"


def test_shipped_log_has_memory_for_every_job(shipped):
    workload = read(shipped, Machine.of_racks(4, 48, local=16 * 1024, pool=512 * 1024, cores=12))
    assert len(workload) == 17_898
    assert workload.excluded == {"runtime unknown or 0": 2}
    assert int(workload.memory.min()) > 0
    assert set(workload.attributes["memory_known"].tolist()) == {1}
