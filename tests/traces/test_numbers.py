import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.traces.numbers import NotANumber, number_text, reals, wholes


@given(st.lists(st.one_of(st.integers(-(10**25), 10**25), st.floats(allow_nan=False, allow_infinity=False)), max_size=9))
def test_formatted_numbers_round_trip(values):
    assert reals([number_text(value) for value in values]).tolist() == [float(value) for value in values]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=9))
def test_64_bit_integers_round_trip(values):
    assert wholes([str(value) for value in values]).tolist() == values


@given(st.lists(st.sampled_from(["1", "-2"]), max_size=4), st.sampled_from(["1e999", "-1e999", "nan", "inf", "1_0", "", "x"]))
def test_invalid_number_is_reported_with_position(before, word):
    for read in (reals, wholes):
        with pytest.raises(NotANumber) as caught:
            read([*before, word, "1", "y"])
        assert caught.value.position == len(before)


@given(st.text(max_size=6))
def test_any_text_is_a_finite_number_or_rejected(text):
    try:
        assert math.isfinite(reals([text])[0])
    except NotANumber:
        assert not text.isascii() or not text.isdigit()


@pytest.mark.parametrize("word", ["9223372036854775808", "-9223372036854775809", "0" * 45 + "9" * 30, "9" * 6000])
def test_integers_beyond_64_bits_are_rejected(word):
    with pytest.raises(NotANumber, match="too large"):
        wholes([word])
