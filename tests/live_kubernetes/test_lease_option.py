"""The lease that a scheduler holds: its own by default, another one, or none."""

from __future__ import annotations

import pytest

from poolwise.cli.live_kubernetes import _lease
from poolwise.errors import InputError


@pytest.mark.parametrize(
    ("option", "shadow", "lease"),
    [
        (None, False, ("batch", "poolwise")),
        ("ops/one", False, ("ops", "one")),
        ("none", False, None),
        (None, True, None),
        ("ops/one", True, None),
    ],
)
def test_lease_is_that_of_the_scheduler_by_default(option: str | None, shadow: bool, lease: tuple[str, str] | None) -> None:
    assert _lease("batch", "poolwise", option, shadow) == lease


@pytest.mark.parametrize("option", ["poolwise", "/poolwise", "poolwise/", ""])
def test_lease_without_a_namespace_or_a_name_is_an_error(option: str) -> None:
    with pytest.raises(InputError, match="is not a valid lease"):
        _lease("batch", "poolwise", option, False)
