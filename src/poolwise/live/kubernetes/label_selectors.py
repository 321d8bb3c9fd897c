"""Label selectors and their requirements."""

from __future__ import annotations

from collections.abc import Mapping

from poolwise.live.kubernetes.objects.selectors import LabelSelector, Requirement


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Return whether a selector matches labels: None matches nothing, an empty selector matches everything."""
    return (
        selector is not None
        and all(labels.get(key) == value for key, value in selector.match_labels.items())
        and all(requirement_matches(requirement, labels) for requirement in selector.match_expressions)
    )


def requirement_matches(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Return whether a requirement of a label or node selector matches labels."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" if value is not None and requirement.values:
            numbers = value, requirement.values[0]
            if all(text.removeprefix("-").isdigit() for text in numbers):
                has, bound = map(int, numbers)
                return has > bound if requirement.operator == "Gt" else has < bound
    return False
