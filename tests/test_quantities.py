"""Quantities with units, compared with fractions computed from the prefixes, independently of the package's table."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from poolwise.files.fields import Memory, Time
from poolwise.model import Workload
from poolwise.quantities import (
    DAY,
    HOUR,
    MINUTE,
    MS,
    SECOND,
    UNITS,
    US,
    format_memory,
    format_time,
    parse,
    shared_time_unit,
    to_ns,
    to_seconds,
    with_slowdown,
)
from poolwise.studies.study import parse_setting

DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
BYTES = {f"{prefix}B": size for prefix, size in (DECIMAL | BINARY | {"K": 10**3}).items()}
NS = 10**9

WANTED: dict[str, dict[str, Fraction]] = {
    "time": {
        "ns": Fraction(1), "us": Fraction(NS, 10**6), "ms": Fraction(NS, 10**3), "s": Fraction(NS),
        "min": Fraction(60 * NS), "h": Fraction(60 * 60 * NS), "d": Fraction(24 * 60 * 60 * NS),
    },
    "memory": {unit: Fraction(size, 2**20) for unit, size in BYTES.items()},
    "bandwidth": {
        **{f"{prefix}B/s": Fraction(size, 10**6) for prefix, size in DECIMAL.items()},
        **{f"{prefix}b/s": Fraction(DECIMAL[prefix], 8 * 10**6) for prefix in "MGT"},
    },
    "count": {"": Fraction(1)},
    "power": {f"{prefix}W": Fraction(DECIMAL[prefix]) for prefix in ("", "k", "M")},
    "money": {f"{prefix}$": Fraction(DECIMAL[prefix]) for prefix in ("", "k", "M")},
}  # fmt: skip
EACH = [(dimension, unit) for dimension, units in WANTED.items() for unit in units]


def test_set_of_units() -> None:
    assert {dimension: set(units) for dimension, units in UNITS.items()} == {k: set(v) for k, v in WANTED.items()}


@pytest.mark.parametrize(
    "written", ["3 d", "3 day", "3 days", "3days", "72 h", "72 hours", "4320 min", "4320 minutes", "259200 seconds"]
)
def test_times_can_be_written_out(written: str) -> None:
    assert parse(written, "time") == 3 * DAY


@pytest.mark.long
@pytest.mark.parametrize(("dimension", "unit"), EACH)
@given(number=st.decimals(0, 10_000, places=3))
def test_quantity_is_number_times_unit_rounded_up(dimension: str, unit: str, number) -> None:
    """Up to one part in 1e9, which counts as a rounding error of the multiplication."""
    exact = Fraction(number) * WANTED[dimension][unit]
    parsed = parse(f"{number} {unit}", dimension)
    assert parsed == math.ceil(exact) or abs(parsed - exact) <= Fraction(1, 10**9) * max(1, exact)
    assert parse(f"  {number}{unit} ", dimension) == parsed


@pytest.mark.parametrize(
    ("text", "dimension", "base"),
    [
        ("64 GiB", "memory", 65536),
        ("1 GB", "memory", 954),  # 953.67 MiB
        ("512 GB", "memory", 488282),
        ("1 TiB", "memory", 2**20),
        ("1048576 B", "memory", 1),
        ("1 B", "memory", 1),
        ("0 B", "memory", 0),
        ("2 GB/s", "bandwidth", 2000),
        ("100 Gb/s", "bandwidth", 12500),
        ("7 us", "time", 7000),
        ("1.5 h", "time", 5400 * SECOND),
        ("1e3 ms", "time", SECOND),
        ("1_000 s", "time", 1000 * SECOND),
        (".5 s", "time", SECOND // 2),
        ("0.1 us", "time", 100),  # exactly, though 0.1 * 1000 need not be
        ("1.1 kW", "power", 1100),
        ("3 k$", "money", 3000),
        (4, "count", 4),
        ("4", "count", 4),
        (2.5, "count", 3),
    ],
)
def test_parse_matches_hand_computed_values(text: str | float, dimension: str, base: int) -> None:
    parsed = parse(text, dimension)
    assert parsed == base and type(parsed) is int


@pytest.mark.parametrize(
    ("text", "dimension", "message"),
    [
        ("64", "memory", "the unit is missing"),
        (64, "memory", "the unit is missing"),
        ("64 gib", "memory", "unknown unit 'gib'; units of memory: B, KiB"),
        ("7 us", "memory", "unknown unit 'us'"),
        ("7 W", "count", "units of count: none"),
        ("-1 s", "time", "finite and not negative"),
        ("1e999 s", "time", "finite and not negative"),
        ("seven us", "time", "is not a quantity; write a number and a unit, such as '7 us'"),
        ("1 2 s", "time", "unknown unit '2'|is not a quantity"),
        ("", "money", "such as '900 \\$'"),
        ("x", "memory", "such as '64 GiB'"),
        ("x", "bandwidth", "such as '2 GB/s'"),
        ("x", "power", "such as '350 W'"),
        ("x", "count", "such as '4'"),
        (math.nan, "count", "is not a quantity"),
        (math.inf, "count", "is not a quantity"),
        (True, "count", "got True"),
    ],
)
def test_invalid_quantity_is_refused(text: str | float, dimension: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(text, dimension)


def test_duration_constants() -> None:
    assert (US, MS, SECOND) == (10**3, 10**6, 10**9)
    assert tuple(parse(text, "time") for text in ("1 min", "1 h", "1 d")) == (MINUTE, HOUR, DAY)


@given(st.integers(0, 2**52))
def test_nanoseconds_round_trip(ns: int) -> None:
    assert abs(to_ns(to_seconds(ns)) - ns) <= 1
    assert to_seconds(ns) == ns / 1e9


@pytest.mark.parametrize(("seconds", "ns"), [(0, 0), (1e-10, 1), (1.5e-9, 2), (1e-9, 1), (0.25, 250_000_000), (2, 2 * NS)])
def test_fraction_of_a_nanosecond_rounds_up(seconds: float, ns: int) -> None:
    assert to_ns(seconds) == ns


@given(st.integers(0, 2**40), st.integers(0, 2**12))
def test_slowdown_adds_extra_time_rounded_up(work: int, sixteenths: int) -> None:
    assert with_slowdown(work, sixteenths / 16) == work + math.ceil(Fraction(work * sixteenths, 16))


def test_slowdown_rounds_once_and_may_be_negative() -> None:
    assert (with_slowdown(10, 0), with_slowdown(10, 0.31), with_slowdown(10, -0.5)) == (10, 14, 5)
    assert with_slowdown(9.2, 0.0) == 10


@pytest.mark.parametrize(
    ("mib", "text"),
    [
        (512, "512 MiB"),
        (1023, "1023 MiB"),
        (1024, "1 GiB"),
        (524288, "512 GiB"),
        (2**20, "1 TiB"),
        (1.5 * 2**20, "1.5 TiB"),
        (-2048, "-2 GiB"),
        (0, "0 MiB"),
    ],
)
def test_format_memory(mib: float, text: str) -> None:
    assert format_memory(mib) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (7380, "2 h 3 min"),
        (86400, "1 day"),
        (86399, "1 day"),
        (90000, "1 day 1 h"),
        (8.58 * 86400, "8 days 14 h"),
        (864000 * 1.3, "13 days"),
        (658 * 86400, "658 days"),
        (5000 * 86400, "5,000 days"),
        (3599, "1 h"),
        (36000 + 60, "10 h"),
        (60, "1 min"),
        (83, "1 min 23 s"),
        (119.9, "2 min"),
        (59.99, "1 min"),
        (59.94, "59.9 s"),
        (59, "59 s"),
        (42.4, "42.4 s"),
        (0.0421, "42.1 ms"),
        (0.9999, "1 s"),
        (float("nan"), "-"),
        (float("inf"), "-"),
        (1, "1 s"),
        (0.25, "250 ms"),
        (7e-6, "7 us"),
        (3e-9, "3 ns"),
        (0, "0 s"),
        (-90, "-1 min 30 s"),
    ],
)
def test_format_time(seconds: float, text: str) -> None:
    assert format_time(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "unit"), [(0, "s"), (179, "s"), (180, "min"), (10_799, "min"), (10_800, "h"), (259_200, "days"), (1e9, "days")]
)
def test_shared_time_unit(seconds: float, unit: str) -> None:
    size, name = shared_time_unit(seconds)
    assert name == unit and (seconds / size >= 3 or unit == "s")


@given(st.integers(1, 2**30))
def test_formatted_memory_round_trips(mib: int) -> None:
    assert parse(format_memory(mib), "memory") == pytest.approx(mib, rel=1e-5, abs=1)


def test_files_settings_and_python_read_the_same_text() -> None:
    key, value = parse_setting("limit=3 days")
    assert TypeAdapter(Time).validate_python(value) == 3 * DAY and key == "limit"
    assert Workload.of(["0 s"], [value]).duration.tolist() == [3 * DAY]
    assert TypeAdapter(Memory).validate_python("16 GiB") == 16 * 1024
    assert Workload.of(["0 s"], ["1 s"], requests={"memory": ["16 GiB"]}).memory.tolist() == [16 * 1024]
    for bare in (16, "16"):
        with pytest.raises(ValidationError, match="unit"):
            TypeAdapter(Memory).validate_python(bare)
