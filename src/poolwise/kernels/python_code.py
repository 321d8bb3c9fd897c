"""The Python code of a kernel, to run as it stands while its machine code is being made."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

PACKAGE = __name__.rpartition(".")[0]


@cache
def python_code(kernel: Callable[..., int]) -> Callable[..., int]:
    """Return a kernel as a Python function: whatever it calls is Python too, and it does to arrays what the kernel does.

    It is some hundred times slower. Where kernels are not compiled at all (NUMBA_DISABLE_JIT) it is the kernel itself.
    """
    made: Callable[..., int] = _Translation().of(kernel)
    return made


class _Translation:
    """Makes the Python function of each kernel once, however often and from wherever it is called."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        """Return the Python function of a kernel, the like of a module of kernels, and anything else as it is."""
        if id(value) in self._made:
            return self._made[id(value)]
        if isinstance(value, ModuleType) and value.__name__.startswith(PACKAGE):
            module = self._made[id(value)] = SimpleNamespace()
            vars(module).update(self._all(vars(value)))
            return module
        if not hasattr(value, "py_func"):
            return value
        source: FunctionType = value.py_func
        names = dict(source.__globals__)
        made = FunctionType(source.__code__, names, source.__name__, source.__defaults__, source.__closure__)
        self._made[id(value)] = made
        names.update(self._all(source.__globals__))
        return made

    def _all(self, names: dict[str, Any]) -> dict[str, Any]:
        return {name: self.of(value) for name, value in names.items()}
