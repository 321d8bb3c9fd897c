"""Imports run in no circle, those for type checking included."""

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

GRAPH = grimp.build_graph("poolwise", cache_dir=None)


def order(edges: dict[str, set[str]]) -> list[str]:
    """Modules in an order in which each comes after all that it imports; raises CycleError."""
    return list(TopologicalSorter(edges).static_order())


def test_no_module_imports_itself_by_way_of_others() -> None:
    edges = {module: GRAPH.find_modules_directly_imported_by(module) for module in GRAPH.modules}
    edges["poolwise"] = set()  # it hands on what `import poolwise` offers, each name when it is first used
    assert len(order(edges)) == len(GRAPH.modules) > 400


def test_a_circle_would_be_found() -> None:
    with pytest.raises(CycleError):
        order({"a": {"b"}, "b": {"c"}, "c": {"a"}})
