"""The one way a kernel is compiled, and the folder that keeps what was compiled.

With the versions of Numba named in `TESTED`, kernels are compiled by way of Numba's internals (`numba_internals`), which is
faster and makes faster code. With any other version, and wherever the environment variable POOLWISE_PLAIN_KERNELS is set,
they are compiled as any function is: the schedules are the same.

Numba notices a change of the file that holds a function, but not of the files it calls into. So each family of kernels
(a folder of this package) has a folder named by a hash of all its sources and of where they are (Numba keeps what it compiles
apart by that) together with the versions of Numba and NumPy, the way of compiling and the CPU: a kernel in it is never stale.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite.binding  # type: ignore[import-untyped]  # ships no types
import numba
import numpy as np

from poolwise.units import __file__ as CONSTANTS

F = TypeVar("F", bound=Callable[..., object])

njit: Any = numba.njit  # its types do not know all its options, nor those of the configuration
config: Any = numba.config

TESTED = ("0.68",)
"""Versions of Numba whose internals `numba_internals` was tested with."""
BUILDS_ON: Mapping[str, tuple[str, ...]] = {"shared_nodes": ("list_scheduling",)}
"""CompiledEngine -> families whose steps it uses, so that its kernels are compiled anew when those change."""
PLAIN = "POOLWISE_PLAIN_KERNELS"
"""Environment variable that makes kernels be compiled without Numba's internals, whatever its version."""


def is_plain(version: str) -> bool:
    """Whether kernels are compiled without Numba's internals, under a version of it."""
    return bool(os.environ.get(PLAIN)) or ".".join(version.split(".")[:2]) not in TESTED


def _options(decorator: str) -> Mapping[str, Any]:
    """Options of `numba.njit` for one of the decorators below."""
    if is_plain(numba.__version__):
        return {}
    options: Mapping[str, Any] = getattr(import_module("poolwise.kernels.numba_internals"), decorator.upper())
    return options


def kernel(function: F) -> F:
    """Decorate a function to be compiled at its first call and kept in the folder of its family.

    No fastmath: the float64 operations stay in their order and are not contracted into fused multiply-adds, because
    priorities and slowdowns must have the same bits in every engine. Division follows NumPy: no test for a zero divisor.
    """
    return _kept(function, _options("kernel"))


def entry(function: F) -> F:
    """Decorate a kernel that allocates nothing: all its arrays are the caller's, so none of them need be counted.

    Numba counts the references to each array of a named tuple whenever the tuple goes into a call; where the tuples hold
    dozens of arrays that is half the time.
    """
    return _kept(function, _options("entry"))


def step(function: F) -> F:
    """Decorate a part of an `entry`: no way in from Python, no file and no machine code of its own."""
    return _part(function, _options("step"))


def inlined(function: F) -> F:
    """Decorate a step whose code goes wherever it is called.

    A tuple of arrays is handed over word by word, seven an array. For a short step with dozens of arrays that took longer
    than the step itself, and half of the time in all. It costs time to compile: not for long steps called in many places.
    """
    return _part(function, _options("inlined"))


def _part(function: F, options: Mapping[str, Any]) -> F:
    return cast(F, njit(error_model="numpy", **options)(function))


def _kept(function: F, options: Mapping[str, Any]) -> F:
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder(Path(function.__code__.co_filename).parent.name))
    try:
        return cast(F, njit(cache=True, error_model="numpy", **options)(function))
    finally:
        config.CACHE_DIR = before


@cache
def folder(family: str) -> Path:
    """Folder of a family's compiled kernels; a temporary one, with a warning, where the user's cache cannot be written."""
    name = f"{family}-{_fingerprint(family)}"
    wanted = _cache_root() / "poolwise" / name
    try:
        wanted.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=wanted):
            return wanted
    except OSError as problem:
        instead = Path(tempfile.mkdtemp(prefix="poolwise-")) / name
        instead.mkdir()
        warnings.warn(
            f"{wanted} cannot be written ({problem.strerror}): kernels are compiled again in each process", stacklevel=2
        )
        return instead


def is_kept(family: str) -> bool:
    """Whether other processes find what this one compiles."""
    return _cache_root() in folder(family).parents


def is_compiled(family: str, kind: str) -> bool:
    """Whether a process has compiled the kernels of one kind of a family before and left its mark."""
    return bool(config.DISABLE_JIT) or _mark(family, kind).is_file()


def mark_compiled(family: str, kind: str) -> None:
    """Leave the mark that `is_compiled` looks for."""
    _mark(family, kind).touch()


def _mark(family: str, kind: str) -> Path:
    return folder(family) / f"{kind.replace(' ', '-')}.compiled"


def _cache_root() -> Path:
    for variable in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        if value := os.environ.get(variable):
            return Path(value)
    return Path.home() / ".cache"


def _fingerprint(family: str) -> str:
    digest = hashlib.sha256()
    here = Path(__file__).parent
    folders = (here, *(here / other for other in (family, *BUILDS_ON.get(family, ()))))
    for source in (Path(CONSTANTS), *(file for folder in folders for file in sorted(folder.glob("*.py")))):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    cpu = f"{llvmlite.binding.get_host_cpu_name()} {llvmlite.binding.get_host_cpu_features().flatten()}"
    way = "plain" if is_plain(numba.__version__) else "internals"
    for part in (str(here), numba.__version__, np.__version__, llvmlite.__version__, cpu, way):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:16]
