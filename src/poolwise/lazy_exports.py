"""Names that a package exports, and imports only when they are first used (PEP 562).

The stub of the package, `__init__.pyi`, is the only list of these names: type checkers read it, and so does the package itself.
Each line has the form `from module import name as name`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_exports(package: str, file: str) -> tuple[list[str], Callable[[str], Any]]:
    """Return the exported names of a package, sorted, and the `__getattr__` that imports them.

    Parameters
    ----------
    package, file
        `__name__` and `__file__` of the package.
    """
    with open(f"{file}i", encoding="utf-8") as stub:  # noqa: PTH123  # `import poolwise` does not wait for pathlib
        module_of = {words[3]: words[1] for line in stub if (words := line.split())}

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        module = module_of[name]
        if module == package:  # a subpackage, which its import sets as an attribute
            return import_module(f"{package}.{name}")
        value = getattr(import_module(module), name)
        setattr(import_module(package), name, value)
        return value

    return sorted(module_of), load
