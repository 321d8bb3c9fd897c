"""Tests that show what the scheduler does with each field of pods, and the table of the documentation with them.

`python -m tests.live_kubernetes.feature_tests` writes the table into the page.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from poolwise.live.kubernetes.pod_features import FEATURES

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "explanation" / "live-kubernetes.md"
FAST, LIVE = "live_kubernetes/", "live/kubernetes/"
"""Folders of the tests without and with a control plane."""

_RANDOM = "random_rules::test_random_pods_have_the_feasible_nodes_and_the_preferences_of_kube_scheduler"
_REFUSED = "test_pod_features::test_unsupported_field_is_refused_and_reported"
FEATURE_TESTS: dict[str, tuple[str, ...]] = {
    "`nodeSelector`, required node affinity": (
        "test_demand::test_node_selector_and_tolerations_restrict_nodes",
        "test_feasibility::test_shipped_scheduler_moves_pods_to_nodes_that_their_constraints_allow",
        _RANDOM,
    ),
    "taints of nodes, tolerations": (
        "test_demand::test_node_selector_and_tolerations_restrict_nodes",
        "test_pod_features::test_toleration_added_to_a_waiting_pod_takes_effect",
        _RANDOM,
        "waiting::test_toleration_added_to_a_pending_pod_takes_effect",
    ),
    "requests of containers, sidecars and init containers, overhead": (
        "test_demand::test_containers_sidecars_init_containers_and_overhead",
        _RANDOM,
    ),
    "`podAffinity`, required": (
        "test_pod_affinity::test_filter_matches_the_naive_rule",
        "test_pod_affinity::test_first_pod_of_a_group_starts_and_attracts_the_others",
        "placement_rules::test_placement_rules_match_the_decisions_of_kube_scheduler",
        _RANDOM,
    ),
    "`podAntiAffinity`, required": (
        "test_pod_affinity::test_filter_matches_the_naive_rule",
        "test_anti_affinity::test_pod_is_kept_away_by_a_matching_term",
        "placement_rules::test_placement_rules_match_the_decisions_of_kube_scheduler",
        _RANDOM,
    ),
    "topology spread, `DoNotSchedule`": (
        "test_topology_spread::test_filter_matches_the_naive_rule",
        "placement_rules::test_placement_rules_match_the_decisions_of_kube_scheduler",
        _RANDOM,
    ),
    "`PreferNoSchedule` taints of nodes": (
        "test_preferences::test_scores_by_taints_nodes_and_pods_match_the_naive_rule",
        _RANDOM,
    ),
    "node affinity, preferred": (
        "test_preferences::test_scores_by_taints_nodes_and_pods_match_the_naive_rule",
        _RANDOM,
    ),
    "`podAffinity`, `podAntiAffinity`, preferred": (
        "test_preferences::test_scores_by_taints_nodes_and_pods_match_the_naive_rule",
        _RANDOM,
    ),
    "topology spread, `ScheduleAnyway`": (
        "test_preferences::test_scores_by_spread_match_the_naive_rule",
        _RANDOM,
    ),
    "`hostPort`, also through `hostNetwork`": (
        "test_host_ports::test_conflicts_match_the_naive_rule",
        _RANDOM,
    ),
    "in-place resize": (
        "test_resize::test_largest_of_desired_admitted_and_applied_amounts_counts",
        "live::test_resized_pods_count_with_their_new_size",
    ),
    "`resourceClaims`, extended resources": (
        "test_allocate::test_allocation_succeeds_if_and_only_if_an_assignment_exists",
        "test_extended::test_claim_requests_the_peak_number_of_devices",
        "devices::test_example_pods_of_every_device_kind_run",
        "devices::test_extended_resource_claims_match_those_of_kube_scheduler",
    ),
    "device taints, `DeviceTaintRule`": (
        "test_taint_rules::test_device_tainted_by_a_rule_is_not_allocated",
        "devices::test_devices_that_a_rule_takes_out_of_service",
    ),
    "volume claims, also ephemeral ones": (
        "test_volumes::test_bound_volume_restricts_the_nodes",
        "test_volumes::test_ephemeral_volume_uses_the_claim_of_its_pod",
        "volumes::test_volume_is_provisioned_elsewhere_if_the_provisioner_gives_up_a_node",
        _RANDOM,
    ),
    "`schedulingGates`": (
        "test_pod_features::test_pod_with_scheduling_gates_waits_until_they_are_removed",
        "waiting::test_pod_starts_once_its_scheduling_gates_are_removed",
    ),
    "`schedulingGroup` with a gang, or the group labels": (
        "test_recovery::test_partly_bound_gang_is_completed",
        "live::test_gangs_by_label_start_together",
        "devices::test_gangs_by_pod_group",
    ),
    "`priority`": (
        "test_priorities::test_highest_priority_starts_first_and_a_gang_has_the_highest_of_its_pods",
        "test_priorities::test_priority_of_a_pod_group_replaces_those_of_its_pods",
        "devices::test_priority_classes_and_preemption_by_a_policy",
        "pod_groups::test_priority_of_a_pod_group_determines_the_order",
    ),
    "preemption by `priority`": (
        "test_pod_features::test_condition_of_a_pod_with_priority_states_that_others_are_not_preempted",
        "waiting::test_condition_states_that_pods_with_a_lower_priority_are_not_preempted",
    ),
    "tolerations with `Lt` or `Gt`": (_REFUSED,),
    "volume claims with `ReadWriteOncePod`, or `WaitForFirstConsumer` without a provisioner": (
        "test_volumes::test_other_claims_are_refused_by_name",
        "volumes::test_local_volumes_determine_the_nodes_of_their_pods",
    ),
    "cloud disks, `iscsi`, `rbd`": (
        _REFUSED,
        "devices::test_fields_that_are_refused_or_not_satisfied_are_reported",
    ),
    "topology and claims of a `PodGroup`": (
        "test_pod_features::test_unsupported_field_of_a_pod_group_is_refused",
        "pod_groups::test_topology_and_claims_of_a_pod_group_are_refused",
    ),
}
"""Feature -> its tests, as MODULE::FUNCTION; names of modules without a control plane begin with `test_`."""


def is_live(test: str) -> bool:
    """Return whether a test runs against a control plane."""
    return not test.startswith("test_")


def missing_tests(tests: Iterable[str]) -> list[str]:
    """Return the tests that do not exist."""
    return [test for test in tests if test.partition("::")[2] not in _functions(test.partition("::")[0])]


@cache
def _functions(module: str) -> frozenset[str]:
    file = TESTS / (LIVE if is_live(module) else FAST) / f"{module}.py"
    body = ast.parse(file.read_text()).body if file.is_file() else []
    return frozenset(statement.name for statement in body if isinstance(statement, ast.FunctionDef))


def feature_table() -> str:
    """Return a Markdown table of all features with the modules of their tests."""
    rows = ["| in the pod | support | effect, or remedy | tests | with a control plane |", "|---|---|---|---|---|"]
    for feature in FEATURES:
        tests = FEATURE_TESTS.get(feature.name, ())
        columns = ([test for test in tests if is_live(test) == live] for live in (False, True))
        modules = (", ".join(dict.fromkeys(f"`{test.partition('::')[0]}`" for test in column)) for column in columns)
        rows.append(f"| {' | '.join([feature.name, feature.support, feature.effect, *modules])} |")
    return "\n".join(rows)


def write_table() -> None:
    """Replace the table in the page."""
    table = re.compile(r"^\| in the pod \| support \|.*?(?=\n\n)", re.MULTILINE | re.DOTALL)
    PAGE.write_text(table.sub(lambda _: feature_table(), PAGE.read_text(), count=1))


if __name__ == "__main__":
    write_table()
