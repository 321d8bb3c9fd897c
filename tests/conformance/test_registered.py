"""Everything that is registered keeps its contract."""

import pytest

from poolwise import conformance, registry

GROUPS = ("orders", "backfills", "placements", "models", "schedulers")


@pytest.mark.parametrize(("group", "name"), [(group, name) for group in GROUPS for name in registry.names(group)])
def test_it_keeps_its_contract(group: str, name: str) -> None:
    results = conformance.check(registry.find(group, name))
    assert [str(result) for result in results if not result.ok] == []
    assert len(results) >= 6


def test_settings_that_differ_from_the_defaults_keep_it_too() -> None:
    for group, name, settings in (
        ("placements", "racks", {"scope": "system"}),
        ("orders", "f1", {"as_printed": True}),
        ("models", "remote_memory", {"expect": "mean", "curve": "linear"}),
        ("models", "remote_memory", {"spread": "paper"}),
    ):
        assert all(result.ok for result in conformance.check(registry.make(group, name, **settings)))
