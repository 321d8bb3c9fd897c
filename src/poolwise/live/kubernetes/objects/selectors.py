"""Selectors of labels and nodes."""

from __future__ import annotations

from poolwise.live.kubernetes.objects.meta import ApiRecord


class Requirement(ApiRecord, frozen=True):
    key: str = ""
    operator: str = ""
    values: list[str] = []


class SelectorTerm(ApiRecord, frozen=True):
    """A node selector term: all of its requirements must match."""

    match_expressions: list[Requirement] = []
    match_fields: list[Requirement] = []


class NodeSelector(ApiRecord, frozen=True):
    """A node selector: at least one of its terms must match."""

    node_selector_terms: list[SelectorTerm] = []


class LabelSelector(ApiRecord, frozen=True):
    """A label selector: all of its requirements must match; without any, it matches everything."""

    match_labels: dict[str, str] = {}
    match_expressions: list[Requirement] = []
