"""Registered policies and models keep their contracts."""

import pytest

from poolwise import conformance, registry

GROUPS = ("orders", "backfills", "placements", "preemptions", "models", "schedulers", "costs")
OTHERS = {
    "admissions",
    "formats",
    "generators",
    "memory_uses",
    "affinities",
    "methods",
    "reproductions",
    "plans",
    "plots",
    "metrics",
    "machine_formats",
}
"""Groups without policies or models. `batch.check` checks the assignments of the methods."""


@pytest.mark.long
@pytest.mark.parametrize(("group", "name"), [(group, name) for group in GROUPS for name in registry.names(group)])
def test_registered_class_keeps_its_contract(group: str, name: str) -> None:
    results = conformance.check(registry.find(group, name))
    assert [str(result) for result in results if not result.ok] == []
    assert len(results) >= 6


def test_other_settings_keep_the_contract() -> None:
    for group, name, settings in (
        ("placements", "racks", {"scope": "system"}),
        ("orders", "f1", {"as_printed": True}),
        ("models", "remote_memory", {"expect": "mean", "curve": "linear"}),
        ("models", "remote_memory", {"spread": "paper"}),
        ("costs", "utility", {"network_aware": True}),
        ("costs", "utility", {"network_aware": True, "slack": 0.5, "max_placed": True}),
    ):
        assert all(result.ok for result in conformance.check(registry.make(group, name, **settings)))


def test_every_group_of_policies_and_models_is_checked() -> None:
    assert {*GROUPS} | OTHERS == set(registry.GROUPS)
    assert all(registry.names(group) for group in GROUPS)
