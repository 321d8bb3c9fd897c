"""Checks as parameters of a pytest test: one case per promise, with expected failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from poolwise.conformance.dispatch import check, configured, promises_of
from poolwise.conformance.findings import Check
from poolwise.errors import InputError

if TYPE_CHECKING:
    import pytest


def parametrize_with_checks(*things: Any, expected_failures: Mapping[str, str] | None = None) -> pytest.MarkDecorator:
    """Parametrize a test with the checks of policies, schedulers or models: one case per object and promise.

    The object runs when its first case runs, once for all of its cases. A promise that no case exercises is skipped.

    Parameters
    ----------
    things
        The objects, or their classes, which are then configured with their defaults.
    expected_failures
        Promise -> reason why it is broken. Such a case fails if the promise is kept.

    Returns
    -------
    MarkDecorator
        For a test with the parameter `check`, a function without arguments that raises AssertionError for a broken promise.

    Raises
    ------
    InputError
        The kind of an object is unknown, or none of the objects makes a promise that is expected to fail.

    Examples
    --------
    >>> import poolwise
    >>> @poolwise.parametrize_with_checks(poolwise.policies.SJF(), poolwise.policies.Easy())
    ... def test_contract(check):
    ...     check()
    """
    import pytest  # a dependency of the tests that call this, not of Poolwise

    expected = dict(expected_failures or {})
    objects = [configured(thing) for thing in things]
    promises = {promise for each in objects for promise in promises_of(each)}
    if unknown := sorted(expected.keys() - promises):
        raise InputError(f"no object promises '{unknown[0]}'", remedy=f"one of: {'; '.join(sorted(promises))}")
    cases = []
    for each in objects:
        results = _results_of(each)
        for promise in promises_of(each):
            marks = [pytest.mark.xfail(reason=expected[promise], strict=True)] if promise in expected else []
            cases.append(pytest.param(_assertion(results, promise), id=f"{type(each).__name__}: {promise}", marks=marks))
    return pytest.mark.parametrize("check", cases)


def _results_of(thing: Any) -> Callable[[], dict[str, Check]]:
    """Return a function that checks the object at its first call, and keeps the results."""
    return cache(lambda: {result.name: result for result in check(thing)})


def _assertion(results: Callable[[], dict[str, Check]], promise: str) -> Callable[[], None]:
    """Return a function that raises AssertionError if a promise is broken."""

    def assert_promise() -> None:
        import pytest

        result = results()[promise]
        if not result.tested:
            pytest.skip("no case exercises it")
        assert result.ok, result.problem

    return assert_promise
