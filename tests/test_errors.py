"""Remedies of errors for unknown names."""

from collections.abc import Callable
from functools import partial

import pytest

from poolwise import catalog, registry
from poolwise.errors import UnknownNameError


def test_each_known_name_is_listed_once():
    assert UnknownNameError.of("order", "x", ["fm", "fcfs", "fm"]).remedy == "known: fcfs, fm"
    assert UnknownNameError.of("order", "x", []).remedy == "known: none"


def test_only_the_closest_of_many_names_are_listed():
    owners = [f"rack{rack}.thin{node}" for rack in range(50) for node in range(50)]
    remedy = UnknownNameError.of("owner", "rack7.thin77", owners).remedy
    assert remedy is not None and "rack7.thin7" in remedy and remedy.endswith(" and 2,490 others")
    assert remedy.count(", ") == 9


def test_name_in_another_case_is_suggested() -> None:
    error = UnknownNameError.of("order", "FCFS", ["fm", "sjf", "fcfs"])
    assert error.remedy == "did you mean 'fcfs'? known: fcfs, fm, sjf"


@pytest.mark.parametrize(
    ("find", "message", "field"),
    [
        (partial(registry.find, "affinities"), "unknown affinity 'none'", "affinity"),
        (partial(registry.find, "memory_uses"), "unknown memory use 'none'", "memory_use"),
        (partial(catalog.find, "mixes"), "unknown shipped mix 'none'", None),
        (partial(catalog.find, "prices"), "unknown shipped price list 'none'", None),
    ],
)
def test_unknown_name_is_of_a_kind_in_the_singular(find: Callable[[str], object], message: str, field: str | None) -> None:
    with pytest.raises(UnknownNameError) as caught:
        find("none")
    assert (caught.value.message, caught.value.field) == (message, field)


def test_shipped_plans_are_suggested_without_the_files_that_they_read() -> None:
    with pytest.raises(UnknownNameError) as caught:
        catalog.find("plans", "gpu-shar")
    assert "'gpu-share'?" in str(caught.value.remedy) and ".txt" not in str(caught.value.remedy)
    with pytest.raises(UnknownNameError, match=r"did you mean 'gpu-share-power.txt'"):
        catalog.find("plans", "gpu-share-powr.txt")
