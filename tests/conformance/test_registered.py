"""Everything that is registered keeps its contract."""

import pytest

from poolwise import conformance, registry

GROUPS = ("orders", "backfills", "placements", "models", "schedulers", "costs")
OTHERS = {
    "admissions",
    "formats",
    "generators",
    "memory_uses",
    "affinities",
    "methods",
    "reproductions",
    "plans",
    "metrics",
    "machine_formats",
}
"""What reads, draws, solves or reports: no policy and no model. `batch.check` checks what the methods place."""


@pytest.mark.long
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
        ("costs", "utility", {"network_aware": True}),
        ("costs", "utility", {"network_aware": True, "slack": 0.5, "max_placed": True}),
    ):
        assert all(result.ok for result in conformance.check(registry.make(group, name, **settings)))


def test_no_group_of_policies_or_models_is_forgotten() -> None:
    assert {*GROUPS} | OTHERS == set(registry.GROUPS)
    assert all(registry.names(group) for group in GROUPS)
