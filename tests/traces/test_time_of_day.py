from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.errors import InputError
from poolwise.traces.numbers import NotANumber
from poolwise.traces.time_of_day import seconds, zone

instants = st.integers(0, 4_000_000_000)


@given(st.lists(instants, max_size=5), st.sampled_from(["UTC", "Europe/Berlin", "America/Los_Angeles", "Asia/Kolkata"]))
def test_local_times_round_trip_except_the_repeated_hour(times, name):
    shown = [datetime.fromtimestamp(time, ZoneInfo(name)) for time in times]
    parsed, repeated = seconds([f"{time:%Y-%m-%dT%H:%M:%S}" for time in shown], zone(name))
    ambiguous = [time.utcoffset() != time.replace(fold=1 - time.fold).utcoffset() for time in shown]
    assert repeated == sum(ambiguous)
    assert parsed.tolist() == [time - 3600 * now.fold for time, now in zip(times, shown, strict=True)]


@given(instants, st.integers(-23 * 60, 23 * 60))
def test_offsets_and_epoch_seconds_ignore_zone(time, minutes):
    there = datetime.fromtimestamp(time, timezone(timedelta(minutes=minutes)))
    plain = f"{there:%Y-%m-%d %H:%M:%S%z}"
    assert (
        seconds([plain, str(time), f"{there.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"], zone("Asia/Kolkata"))[0].tolist()
        == [time] * 3
    )


@given(st.text(max_size=25))
def test_invalid_time_is_reported_with_position(word):
    try:
        parsed, _ = seconds(["0", word], zone("Europe/Berlin"))
    except NotANumber as error:
        assert error.position == 1
    else:
        assert word.strip("0123456789-+:TZ ") == ""
        assert len(parsed) == 2


def test_unknown_zone_is_reported():
    for name in ("Berlin", "", "/etc/passwd", "Europe", "a\0b"):
        with pytest.raises(InputError, match="unknown time zone") as caught:
            zone(name)
        assert (caught.value.field, bool(caught.value.remedy)) == ("timezone", True)
