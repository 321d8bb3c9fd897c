"""Python functions equivalent to kernels, run until compilation has finished."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

PACKAGE = __name__.rpartition(".")[0]


@cache
def python_code(kernel: Callable[..., int]) -> Callable[..., int]:
    """Return a kernel as a Python function that only calls Python functions and has the same effect on arrays.

    It is several hundred times slower. Records are namespaces while it runs, since their fields are slow to access in Python.
    """
    made: Callable[..., int] = _Translation().of(kernel)

    def run(*arguments: Any) -> int:
        copies: list[tuple[Any, SimpleNamespace]] = []
        result = made(*(_with_namespaces(argument, copies) for argument in arguments))
        for record, namespace in copies:
            for name, value in vars(namespace).items():
                record[name] = value
        return result

    return run


def _with_namespaces(value: Any, copies: list[tuple[Any, SimpleNamespace]]) -> Any:
    """Return a value with a namespace for each record in it, and add these pairs to `copies`."""
    if isinstance(value, np.void):
        copies.append((value, SimpleNamespace(**dict(zip(value.dtype.names or (), value.item(), strict=True)))))
        return copies[-1][1]
    return type(value)(*(_with_namespaces(item, copies) for item in value)) if isinstance(value, tuple) else value


class _Translation:
    """Translates each kernel to a Python function only once, regardless of how many callers it has."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        """Return the Python function of a kernel, a namespace for a module of kernels, and any other value unchanged."""
        if id(value) in self._made:
            return self._made[id(value)]
        if isinstance(value, ModuleType) and value.__name__.startswith(PACKAGE):
            module = self._made[id(value)] = SimpleNamespace()
            vars(module).update(self._all(vars(value)))
            return module
        if not hasattr(value, "py_func"):
            return value
        source: FunctionType = getattr(value.py_func, "body", value.py_func)
        names = dict(source.__globals__)
        made = FunctionType(source.__code__, names, source.__name__, source.__defaults__, source.__closure__)
        self._made[id(value)] = made
        names.update(self._all(source.__globals__))
        return made

    def _all(self, names: dict[str, Any]) -> dict[str, Any]:
        return {name: self.of(value) for name, value in names.items()}
