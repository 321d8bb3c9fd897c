"""The admission policy of `deploy/kubernetes/rbac.yaml`: it accepts the scheduler's writes and rejects all others."""

from __future__ import annotations

import copy
from typing import Any

import cel
import pytest
import yaml

from tests.live.kubernetes import objects as make
from tests.live.kubernetes.shipped_files import DEPLOY

Item = dict[str, Any]
USER = "system:serviceaccount:poolwise:poolwise"
OBJECTS = {(item["kind"], item["metadata"]["name"]): item for item in yaml.safe_load_all((DEPLOY / "rbac.yaml").read_text())}
POLICY = OBJECTS["ValidatingAdmissionPolicy", "poolwise-scheduler"]["spec"]
PROTECTION = "resource.kubernetes.io/delete-protection"
EXTENDED = "resource.kubernetes.io/extended-resource-claim"
SELECTED = "volume.kubernetes.io/selected-node"


def evaluate(expression: str, variables: Item) -> Any:
    return cel.compile(expression).execute(cel.Context(variables=variables))


def rejections(kind: str, before: Item | None, after: Item) -> list[str]:
    """Return the messages of the validations that reject a write, as the API server evaluates them."""
    request = {
        "operation": "CREATE" if before is None else "UPDATE",
        "resource": {"resource": kind},
        "userInfo": {"username": USER},
    }
    seen: Item = {"object": after, "oldObject": before if before is not None else after, "request": request, "variables": {}}
    for variable in POLICY["variables"]:
        seen["variables"][variable["name"]] = evaluate(variable["expression"], seen)
    return [
        validation["message"] for validation in POLICY["validations"] if evaluate(validation["expression"], seen) is not True
    ]


def changed(before: Item, **meta: Any) -> Item:
    """Return an object with other metadata; None removes a field."""
    after = copy.deepcopy(before)
    for key, value in meta.items():
        after["metadata"].pop(key, None)
        if value is not None:
            after["metadata"][key] = value
    return after


CLAIM = make.claim("c", make.exactly("gpu"))
PROTECTED = changed(CLAIM, finalizers=[PROTECTION], labels={"a": "b"})
VOLUME = changed(make.volume_claim("v", "late"), annotations={"a": "b"}, finalizers=["kubernetes.io/pvc-protection"])
OWNERS = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]
IMPLICIT = changed(CLAIM, annotations={EXTENDED: "true"}, ownerReferences=OWNERS)
OWN, FOREIGN = make.pod("p"), make.pod("p", schedulerName="default-scheduler")
ACCEPTED = {
    "status of its pod": ("pods", OWN, OWN),
    "finalizer of a claim": ("resourceclaims", CLAIM, changed(CLAIM, finalizers=[PROTECTION])),
    "finalizer in addition to another": (
        "resourceclaims",
        changed(CLAIM, finalizers=["a/b"]),
        changed(CLAIM, finalizers=["a/b", PROTECTION]),
    ),
    "claim for extended resources": ("resourceclaims", None, IMPLICIT),
    "selected node": ("persistentvolumeclaims", VOLUME, changed(VOLUME, annotations={"a": "b", SELECTED: "n0"})),
    "other selected node": (
        "persistentvolumeclaims",
        changed(VOLUME, annotations={"a": "b", SELECTED: "n0"}),
        changed(VOLUME, annotations={"a": "b", SELECTED: "n1"}),
    ),
    "selected node removed": ("persistentvolumeclaims", changed(VOLUME, annotations={"a": "b", SELECTED: "n0"}), VOLUME),
}
"""Write -> kind, object before and after it."""
REJECTED = {
    "status of a foreign pod": ("pods", FOREIGN, FOREIGN, "its own pods only"),
    "foreign finalizer": ("resourceclaims", CLAIM, changed(CLAIM, finalizers=["a/b"]), "may add the finalizer"),
    "finalizer removed": ("resourceclaims", PROTECTED, changed(PROTECTED, finalizers=None), "may add the finalizer"),
    "labels removed": ("resourceclaims", PROTECTED, changed(PROTECTED, labels=None), "may not change labels"),
    "annotations added": ("resourceclaims", CLAIM, changed(CLAIM, annotations={"a": "b"}), "may not change labels"),
    "owners added": ("resourceclaims", CLAIM, changed(CLAIM, ownerReferences=OWNERS), "may not change labels"),
    "claim without annotation": ("resourceclaims", None, changed(IMPLICIT, annotations=None), "may create claims"),
    "claim without owner": ("resourceclaims", None, changed(IMPLICIT, ownerReferences=None), "may create claims"),
    "other annotation": ("persistentvolumeclaims", VOLUME, changed(VOLUME, annotations={"a": "c"}), "select the node"),
    "annotation removed": ("persistentvolumeclaims", VOLUME, changed(VOLUME, annotations=None), "select the node"),
    "labels of a volume claim": ("persistentvolumeclaims", VOLUME, changed(VOLUME, labels={"a": "b"}), "select the node"),
    "finalizer of a volume claim": ("persistentvolumeclaims", VOLUME, changed(VOLUME, finalizers=None), "select the node"),
    "owner of a volume claim": ("persistentvolumeclaims", VOLUME, changed(VOLUME, ownerReferences=OWNERS), "select the node"),
    "size of a volume claim": (
        "persistentvolumeclaims",
        VOLUME,
        {**VOLUME, "spec": {**VOLUME["spec"], "storageClassName": "other"}},
        "select the node",
    ),
}
"""Write -> kind, object before and after it, and a part of the only message."""


@pytest.mark.parametrize("write", ACCEPTED)
def test_writes_of_the_scheduler_are_accepted(write: str) -> None:
    assert rejections(*ACCEPTED[write]) == []


@pytest.mark.parametrize("write", REJECTED)
def test_other_writes_are_rejected_with_their_reason(write: str) -> None:
    *arguments, text = REJECTED[write]
    (message,) = rejections(*arguments)
    assert text in message


def test_policy_applies_to_the_scheduler_only_and_fails_closed() -> None:
    (condition,) = POLICY["matchConditions"]
    for name, applies in ((USER, True), ("system:serviceaccount:kube-system:resourceclaim-controller", False)):
        assert evaluate(condition["expression"], {"request": {"userInfo": {"username": name}}}) is applies
    binding = OBJECTS["ValidatingAdmissionPolicyBinding", "poolwise-scheduler"]["spec"]
    assert POLICY["failurePolicy"] == "Fail" and binding == {"policyName": "poolwise-scheduler", "validationActions": ["Deny"]}


def test_policy_covers_every_object_that_the_role_may_write_except_bindings_evictions_and_events() -> None:
    writes = {"create", "update", "patch"}
    rules = OBJECTS["ClusterRole", "poolwise-scheduler"]["rules"]
    granted = {resource for rule in rules if writes & {*rule["verbs"]} for resource in rule["resources"]}
    matched = {resource for rule in POLICY["matchConstraints"]["resourceRules"] for resource in rule["resources"]}
    unrestricted = {"pods/binding", "pods/eviction", "events", "resourceclaims/status", "resourceclaims/binding"}
    assert granted - matched == unrestricted and matched <= granted
