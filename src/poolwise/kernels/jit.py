"""Compilation of kernels, and the cache folder for compiled code.

With a Numba version listed in `TESTED`, kernels are compiled through Numba's internals (`numba_internals`), which compiles
faster and produces faster code. With any other version, or with the environment variable POOLWISE_PLAIN_KERNELS set, they are
compiled by Numba's public interface. The schedules are the same.

Numba's cache detects changes of the file that contains a function, but not of the files that it calls. So each kernel package
(a folder of this package) has a cache folder named by a hash of all its sources, their location (part of Numba's cache key),
the versions of Numba and NumPy, the way of compilation and the CPU. A cached kernel is therefore never stale.
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

njit: Any = numba.njit  # its types lack some of its options, and those of the configuration
config: Any = numba.config

TESTED = ("0.68",)
"""Versions of Numba whose internals `numba_internals` has been tested with."""
BUILDS_ON: Mapping[str, tuple[str, ...]] = {"list_scheduling": ("common",), "shared_nodes": ("common",)}
"""Kernel package -> kernel packages whose steps it calls, so that its kernels are recompiled when those change."""
PLAIN = "POOLWISE_PLAIN_KERNELS"
"""Environment variable that disables the use of Numba's internals, whatever its version."""


def is_plain(version: str) -> bool:
    """Return whether kernels are compiled without Numba's internals under a version of Numba."""
    return bool(os.environ.get(PLAIN)) or ".".join(version.split(".")[:2]) not in TESTED


def _options(decorator: str) -> Mapping[str, Any]:
    """Return the options of `numba.njit` for one of the decorators below."""
    if is_plain(numba.__version__):
        return {}
    options: Mapping[str, Any] = getattr(import_module("poolwise.kernels.numba_internals"), decorator.upper())
    return options


def kernel(function: F) -> F:
    """Decorate a function that is compiled at its first call and cached in the folder of its kernel package.

    No fastmath: float64 operations keep their order and are not contracted into fused multiply-adds, because
    priorities and slowdowns must have the same bits in every engine. Division follows NumPy: zero divisors are not checked.
    """
    return _cached(function, _options("kernel"))


def entry(function: F) -> F:
    """Decorate a kernel that allocates nothing: the caller owns all arrays, so their references need not be counted.

    Numba counts the references to each array of a named tuple whenever the tuple is passed to a call. With dozens of arrays per
    tuple, that takes half the runtime.
    """
    return _cached(function, _options("entry"))


def step(function: F) -> F:
    """Decorate a part of an `entry`: it has no Python wrapper, no cache file and no machine code of its own."""
    return _uncached(function, _options("step"))


def inlined(function: F) -> F:
    """Decorate a step that is inlined wherever it is called.

    A tuple of arrays is passed word by word, seven words per array. For short steps with dozens of arrays this took longer than
    the step itself, and half of the total time. Inlining costs compile time: do not use it for long steps with many call sites.
    """
    return _uncached(function, _options("inlined"))


def _uncached(function: F, options: Mapping[str, Any]) -> F:
    return cast(F, njit(error_model="numpy", **options)(function))


def _cached(function: F, options: Mapping[str, Any]) -> F:
    before = config.CACHE_DIR
    config.CACHE_DIR = str(cache_folder(Path(function.__code__.co_filename).parent.name))
    try:
        return cast(F, njit(cache=True, error_model="numpy", **options)(function))
    finally:
        config.CACHE_DIR = before


@cache
def cache_folder(package: str) -> Path:
    """Return the cache folder of a kernel package; a temporary one, with a warning, if the user's cache is not writable."""
    name = f"{package}-{_fingerprint(package)}"
    preferred = _cache_root() / "poolwise" / name
    try:
        preferred.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=preferred):
            return preferred
    except OSError as problem:
        fallback = Path(tempfile.mkdtemp(prefix="poolwise-")) / name
        fallback.mkdir()
        warnings.warn(f"cannot write {preferred} ({problem.strerror}): every process compiles its kernels again", stacklevel=2)
        return fallback


def is_persistent(package: str) -> bool:
    """Return whether other processes can load the kernels that this one compiles."""
    return _cache_root() in cache_folder(package).parents


def is_compiled(package: str, kind: str) -> bool:
    """Return whether the kernels of one kind have been compiled and marked as such by some process."""
    return bool(config.DISABLE_JIT) or _mark(package, kind).is_file()


def mark_compiled(package: str, kind: str) -> None:
    """Create the marker file that `is_compiled` checks."""
    _mark(package, kind).touch()


def _mark(package: str, kind: str) -> Path:
    return cache_folder(package) / f"{kind.replace(' ', '-')}.compiled"


def _cache_root() -> Path:
    for variable in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        if value := os.environ.get(variable):
            return Path(value)
    return Path.home() / ".cache"


def _fingerprint(package: str) -> str:
    digest = hashlib.sha256()
    here = Path(__file__).parent
    folders = (here, *(here / other for other in (package, *BUILDS_ON.get(package, ()))))
    for source in (Path(CONSTANTS), *(file for folder in folders for file in sorted(folder.glob("*.py")))):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    cpu = f"{llvmlite.binding.get_host_cpu_name()} {llvmlite.binding.get_host_cpu_features().flatten()}"
    way = "plain" if is_plain(numba.__version__) else "internals"
    for part in (str(here), numba.__version__, np.__version__, llvmlite.__version__, cpu, way):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:16]
