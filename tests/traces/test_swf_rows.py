import gzip
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.errors import InputError
from poolwise.traces.swf_rows import FIELDS, JOB, RUN, SUBMIT, SwfRows, read_rows, write_swf_rows

FRACTIONAL = {"Submit Time", "Wait Time", "Run Time", "Average CPU Time Used", "Used Memory", "Requested Time"}
FRACTIONAL |= {"Requested Memory", "Think Time"}

unknown_or_count = st.one_of(st.just(-1), st.integers(0, 2**40))
amount = st.one_of(unknown_or_count, st.floats(0, 1e12))


@st.composite
def logs(draw, least=1):
    """Draw rows of valid values with unique ids."""
    ids = draw(st.lists(st.integers(0, 10**9), min_size=least, max_size=6, unique=True))
    rest = [amount if name in FRACTIONAL else unknown_or_count for name in FIELDS[1:]]
    return np.array([[job, *(draw(field) for field in rest)] for job in ids], dtype=np.float64)


def plain_row(job, **changes):
    values = {name: 1 for name in FIELDS} | {"Job Number": job} | changes
    return " ".join(str(values[name]) for name in FIELDS)


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@given(logs(), st.sampled_from(["log.swf", "log.swf.gz"]), st.lists(st.text(st.characters(codec="ascii", categories="LNPS"))))
@settings(max_examples=60, deadline=None)
def test_written_rows_round_trip(values, name, comments):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write_swf_rows(SwfRows(path, np.arange(len(values)), tuple(comments), values), path)
        back = read_rows(path)
    assert np.array_equal(back.values, values)
    assert back.comments == tuple(comments)
    assert back.line.tolist() == list(range(len(comments) + 1, len(comments) + 1 + len(values)))


BAD_WORDS = [
    "x",
    "nan",
    "NaN",
    "inf",
    "-inf",
    "1e999",
    "1_0",
    "\u0661",
    "0x1",
    "--1",
    "1.2.3",
    "1e",
    ".",
    "1,5",
    "9" * 20,
    "-1e300",
    "9" * 6000,
]


@given(logs(), st.data())
@settings(max_examples=150, deadline=None)
def test_malformed_field_is_reported_with_line(values, data):
    row = data.draw(st.integers(0, len(values) - 1))
    field = data.draw(st.integers(0, len(FIELDS) - 1))
    words = BAD_WORDS if FIELDS[field] in FRACTIONAL else [*BAD_WORDS, "0.5"]
    blank = data.draw(st.lists(st.sampled_from(["", "  ", "; a comment", "\t"]), min_size=len(values), max_size=len(values)))
    lines, expected = [], 0
    for k, numbers in enumerate(values.tolist()):
        written = [repr(number) for number in numbers]
        if k == row:
            written[field] = data.draw(st.sampled_from(words))
        lines += [blank[k], "\t".join(written)]
        expected = len(lines) if k == row else expected
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "log.swf", "\n".join(lines))
        with pytest.raises(InputError) as caught:
            read_rows(path)
    assert (caught.value.file, caught.value.line, caught.value.field) == (path, expected, FIELDS[field])
    assert caught.value.remedy


@given(logs(), st.data(), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_row_of_wrong_width_is_reported_with_line(values, data, extra):
    rows = [[*map(repr, numbers), *["{1,2}"] * extra] for numbers in values.tolist()]
    row = data.draw(st.integers(0, len(rows) - 1))
    width = data.draw(st.integers(1, 25).filter(lambda n: n != 18 + extra))
    rows[row] = (rows[row] + ["7"] * 25)[:width]
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "log.swf", "; header\r\n" + "\r\n".join(map(" ".join, rows)))
        with pytest.raises(InputError) as caught:
            read_rows(path, extra)
    assert caught.value.line == row + 2
    assert f"{width} fields" in caught.value.message
    assert caught.value.remedy


@given(st.one_of(st.binary(max_size=80), st.text("0123456789 -.;e\n\t", max_size=200).map(str.encode)), st.booleans())
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_read_or_raise_input_error(content, packed):
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "log", gzip.compress(content) if packed else content)
        try:
            assert len(read_rows(path)) > 0
        except InputError as error:
            assert error.file == path


def test_truncated_gzip_is_an_input_error(tmp_path):
    whole = gzip.compress("\n".join(plain_row(job) for job in range(5)).encode())
    for size in range(2, len(whole)):
        with pytest.raises(InputError, match="gzip"):
            read_rows(write(tmp_path / "cut.swf.gz", whole[:size]))
    damaged = whole[:30] + bytes([whole[30] ^ 0xFF]) + whole[31:]
    with pytest.raises(InputError, match="gzip"):
        read_rows(write(tmp_path / "damaged.swf.gz", damaged))


def test_gzip_is_detected_by_content(tmp_path):
    row = plain_row(1).encode()
    assert len(read_rows(write(tmp_path / "plain.gz", row))) == 1
    assert len(read_rows(write(tmp_path / "packed.swf", gzip.compress(row)))) == 1


def test_bytes_that_are_not_utf8_are_read_as_latin1(tmp_path):
    log = read_rows(write(tmp_path / "log.swf", b"; Acknowledge: \xc5ke\n" + plain_row(1).encode()))
    assert log.comments == (" Acknowledge: Åke",)
    again = read_rows(write(tmp_path / "log.swf", "; Acknowledge: Åke\n".encode() + plain_row(1).encode()))
    assert again.comments == log.comments


def test_binary_file_is_reported_with_line(tmp_path):
    with pytest.raises(InputError, match="not 8-bit text") as caught:
        read_rows(write(tmp_path / "log.swf", b"; header\n" + "1 2 3".encode("utf-16-le")))
    assert (caught.value.line, bool(caught.value.remedy)) == (2, True)


@pytest.mark.parametrize("content", ["", "\n\n", "; only\n; a header\n"])
def test_trace_without_jobs_is_an_input_error(tmp_path, content):
    with pytest.raises(InputError, match="no jobs"):
        read_rows(write(tmp_path / "log.swf", content))


def test_duplicate_job_id_is_reported_with_both_lines(tmp_path):
    lines = ["; header", plain_row(7), plain_row(8), plain_row("7.0", **{"Run Time": -1})]
    with pytest.raises(InputError, match="job 7 is already in line 2") as caught:
        read_rows(write(tmp_path / "log.swf", "\n".join(lines)))
    assert (caught.value.line, caught.value.field) == (4, FIELDS[JOB])


@pytest.mark.parametrize("submit", ["-2", "-0.5", "-1.5"])
def test_negative_submit_time_is_an_input_error_unless_unknown(tmp_path, submit):
    lines = [plain_row(1, **{"Submit Time": -1}), plain_row(2, **{"Submit Time": submit})]
    with pytest.raises(InputError, match="negative") as caught:
        read_rows(write(tmp_path / "log.swf", "\n".join(lines)))
    assert (caught.value.line, caught.value.field) == (2, FIELDS[SUBMIT])


def test_extra_columns_are_ignored(tmp_path):
    path = write(tmp_path / "log.swf", f"{plain_row(1)} {{3,4}} q_1d nan\n{plain_row(2)} ; ; ;\n")
    assert read_rows(path, 3).values.shape == (2, 18)
    with pytest.raises(InputError, match="21 fields") as caught:
        read_rows(path)
    assert "extra_columns=3" in caught.value.remedy
    with pytest.raises(InputError):
        read_rows(path, -1)


def test_large_log_keeps_row_order_and_lines(tmp_path):
    n = 41_000  # more than two blocks
    path = write(tmp_path / "log.swf", "".join(plain_row(job, **{"Run Time": job + 0.5}) + "\n" for job in range(n)))
    log = read_rows(path)
    assert np.array_equal(log.values[:, RUN], np.arange(n) + 0.5)
    assert np.array_equal(log.line, np.arange(1, n + 1))
    lines = path.read_text().splitlines()
    lines[40_500] = lines[40_500].replace(" ", " x", 1)
    with pytest.raises(InputError) as caught:
        read_rows(write(path, "\n".join(lines)))
    assert caught.value.line == 40_501
