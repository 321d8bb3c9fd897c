"""Docstrings of the public interface: complete NumPy style, with examples that run."""

import doctest
import inspect
import re
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

import poolwise
from poolwise import interfaces

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def public() -> Iterator[tuple[str, Any]]:
    """Yield (name, object) of every public class and function; a class of both modules has its name in `poolwise`."""
    for module in (interfaces, poolwise):
        for name in module.__all__:
            thing = getattr(module, name)
            if isinstance(thing, type) or inspect.isfunction(thing):
                yield f"{module.__name__}.{name}", thing


PUBLIC = dict(public())
NAMES = sorted({id(thing): name for name, thing in PUBLIC.items()}.values())


def documented(docstring: str) -> set[str]:
    """Return the names under the headings Parameters and Attributes."""
    names: set[str] = set()
    sections = re.split(r"(?m)^(\w[\w ]*)\n-+\n", inspect.cleandoc(docstring))
    for heading, text in zip(sections[1::2], sections[2::2], strict=True):
        if heading in ("Parameters", "Attributes"):
            for line in text.splitlines():
                if line and not line.startswith(" "):
                    names |= {name.strip().lstrip("*") for name in line.partition(" : ")[0].split(",")}
    return names


def parameters(thing: Any) -> set[str]:
    """Return the names of the parameters of a function, or of the constructor of a class."""
    if isinstance(thing, type):
        own = "__init__" in vars(thing) or issubclass(thing, tuple)
        if not own or issubclass(thing, Enum) or getattr(thing, "_is_protocol", False):
            return set()
    return {name for name in inspect.signature(thing).parameters if name != "self" and not name.startswith("_")}


METHODS = [poolwise.Machine.of_racks, poolwise.Machine.flat, poolwise.Workload.of, poolwise.SimulatedRun.plot]
"""Constructors and methods that users call most."""


def test_no_public_name_is_without_a_docstring() -> None:
    for module in (poolwise, interfaces):
        for name in module.__all__:
            if name not in ("__version__", "METRICS", "OrderKind"):
                assert getattr(module, name).__doc__, name


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_documented(name: str) -> None:
    assert parameters(PUBLIC[name]) - documented(PUBLIC[name].__doc__) == set()


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__qualname__)
def test_every_parameter_of_a_common_method_is_documented(method: Callable[..., Any]) -> None:
    assert parameters(method) - documented(str(method.__doc__)) == set()


@pytest.mark.parametrize("name", [name for name in NAMES if inspect.isfunction(PUBLIC[name])])
def test_functions_document_what_they_return(name: str) -> None:
    docstring = inspect.cleandoc(PUBLIC[name].__doc__)
    assert "\nReturns\n-------\n" in docstring and "\nExamples\n--------\n" in docstring


@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = [test for test in doctest.DocTestFinder().find(PUBLIC[name], name, globs={}) if test.examples]
    assert examples, f"{name} has no example"
    for test in examples:
        report: list[str] = []
        result = doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=report.append)
        assert result.failed == 0, "".join(report)


def test_help_of_simulate_documents_its_arguments() -> None:
    assert {"workload", "machine", "engine"} <= documented(str(poolwise.simulate.__doc__))
