"""Tests that values of claims and slices are validated before they reach a command or a file."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.errors import InputError
from poolwise.live.kubernetes.objects.device import PublishedDevice
from poolwise_agents.node_agent.required_attachments import required_record
from poolwise_agents.node_agent.template import GROUPS, PATTERNS, check_placeholders, fill, placeholders, validate_value
from tests.helpers.node_agent import DRIVER, claim_for, decoded, node_agent_file

HOSTILE = ("a;b", "$(x)", "`x`", "a b", "a\nb", "../x", "a/../b", "-x", "--help", "a\0b", "'", '"', "a|b", "a&b", "", "a\n")
HOSTILE += ("x" * 300, "é")


@pytest.mark.parametrize("name", [*PATTERNS, "attribute.address", "capacity.memory"])
@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_values_are_rejected_for_every_placeholder(name: str, value: str) -> None:
    with pytest.raises(InputError, match=name):
        fill(f"--to={{{name}}}", {name: value}, {})


@given(st.sampled_from([*PATTERNS, *(f"{group}.x" for group in GROUPS)]), st.text(max_size=80))
def test_accepted_values_are_plain_and_start_no_option(name: str, value: str) -> None:
    try:
        validate_value(name, value, {})
    except InputError:
        return
    assert value.isascii() and value.isprintable() and " " not in value and value[0].isalnum() and ".." not in value
    assert not set(value) & set(";|&$`'\"\\<>(){}*?!#~%^=,")


def test_custom_patterns_never_allow_options_or_parent_folders() -> None:
    patterns = {"attribute.nqn": r"nqn\.[a-z0-9.:-]+"}
    assert fill("{attribute.nqn}", {"attribute.nqn": "nqn.2026-11.example:a"}, patterns) == "nqn.2026-11.example:a"
    with pytest.raises(InputError):
        fill("{attribute.nqn}", {"attribute.nqn": "10.0.0.7"}, patterns)
    for value in ("-x", "../x", "a\nb"):
        with pytest.raises(InputError):
            fill("{attribute.nqn}", {"attribute.nqn": value}, {"attribute.nqn": r"[\s\S]*"})


def test_braces_are_parsed_strictly() -> None:
    assert placeholders("{a}{{x}}{b.c}") == ["a", "b.c"] and fill("{{{node}}}", {"node": "n1"}, {}) == "{n1}"
    for text in ("{", "}", "{}", "{node!r}", "{node:>9}", "{0}"):
        with pytest.raises(InputError):
            check_placeholders([text], {})
    for name in ("nod", "attribute", "attribute.a.b", "attribute.a[0]", "claim.__class__"):
        with pytest.raises(InputError, match="unknown placeholder"):
            check_placeholders([f"{{{name}}}"], {})
    with pytest.raises(InputError, match=r"unknown value 'attribute.x'"):
        fill("{attribute.x}", {"node": "n"}, {})


def _record(folder: Path, claim: dict[str, Any], **attributes: Any) -> Any:
    device = PublishedDevice(
        name="gpu-0", attributes={"template": {"string": "remote"}, "address": {"string": "a:1"}, **attributes}
    )
    devices = {("gpu-a", "gpu-0"): device, ("gpu-a/../x", "gpu-0"): device, ("gpu-a", "../gpu"): device}
    return required_record(decoded(claim), "node-1", node_agent_file(folder), devices)


def test_invalid_claims_are_rejected(tmp_path: Path) -> None:
    good = claim_for("train", "gpu-0")
    assert _record(tmp_path, good).devices[0].attach[1:3] == ("gpu-0", "--to=a:1")
    wrong: dict[str, dict[str, Any]] = {
        "'-'": claim_for("train", "gpu-0"),
        "claim.name": claim_for("a;b", "gpu-0"),
        "device": claim_for("train", "../gpu"),
        "pool": claim_for("train", "gpu-0", pool="gpu-a/../x"),
        "share": claim_for("train", "gpu-0", shareID="$(x)"),
        "no slice": claim_for("train", "gpu-7"),
        "admin access": claim_for("train", "gpu-0", adminAccess=True),
        "for the node 'node-2'": claim_for("train", "gpu-0", node="node-2"),
        "parameters": claim_for("train", "gpu-0"),
        "no device of": claim_for("train", "gpu-0", driver="other.example"),
    }
    wrong["parameters"]["status"]["allocation"]["devices"]["config"] = [{"opaque": {"driver": DRIVER, "parameters": {}}}]
    wrong["'-'"]["metadata"]["uid"] = "-"
    for words, claim in wrong.items():
        with pytest.raises(InputError, match=words):
            _record(tmp_path, claim)
    for kind, words in (({"string": "a b"}, "attribute.address"), ({}, "unknown value")):
        with pytest.raises(InputError, match=words):
            _record(tmp_path, good, address=kind)
    with pytest.raises(InputError, match="needs the template 'unheard'"):
        _record(tmp_path, good, template={"string": "unheard"})


def test_pinned_node_of_an_allocation() -> None:
    def term(*names: str, key: str = "metadata.name") -> dict[str, Any]:
        return {"matchFields": [{"key": key, "operator": "In", "values": [*names]}]}

    def pinned(*terms: dict[str, Any]) -> str | None:
        claim = claim_for("train", "gpu-0")
        claim["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [*terms]}
        return decoded(claim).pinned_node

    assert pinned(term("n1")) == "n1" and pinned(term("n1"), term("n1")) == "n1"
    assert [pinned(*terms) for terms in ([], [term("n1", "n2")], [term("n1"), term("n2")], [term("x", key="y")])] == [None] * 4
