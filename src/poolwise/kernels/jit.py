"""Compilation of kernels, and the cache folders for compiled code.

With a Numba version listed in `TESTED`, kernels are compiled through Numba's internals (`numba_internals`), which compiles
faster and produces faster code. With any other version, or with the environment variable POOLWISE_PLAIN_KERNELS set, they are
compiled by Numba's public interface. The schedules are the same.

Numba's cache detects changes to the file that contains a function, but not to the files that define its callees. So each kernel
package (a folder of this package) has a cache folder named by a hash of all its sources, the versions of Python, Numba and
NumPy, the way of compilation and the CPU. A cached kernel is therefore never stale, and every checkout with the same sources
loads it.

A platform wheel carries kernels compiled for the CPUs of `GENERIC`. They are loaded if the CPU and all versions match;
otherwise kernels are compiled as they are in a checkout.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

import llvmlite.binding  # type: ignore[import-untyped]  # ships no types
import numba
import numpy as np

from poolwise.kernels import GENERIC, GENERIC_FEATURES
from poolwise.quantities import __file__ as CONSTANTS

F = TypeVar("F", bound=Callable[..., object])

njit: Any = numba.njit  # its types lack some of its options, and those of the configuration
config: Any = numba.config

TESTED = ("0.68",)
"""Versions of Numba whose internals `numba_internals` has been tested with."""
BUILDS_ON: Mapping[str, tuple[str, ...]] = {"list_scheduling": ("common",), "shared_nodes": ("common",)}
"""Kernel package -> kernel packages whose steps it calls, so that its kernels are recompiled when those change."""
SHIPPED = Path(__file__).parent / "compiled"
"""Folder of the kernels in a platform wheel."""
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

    Numba counts the references to each array of a named tuple whenever a call receives the tuple. With dozens of arrays per
    tuple, that takes half the runtime. The steps receive named tuples by reference: see `references`.
    """
    return _entry(function, "entry")


def long_entry(function: F) -> F:
    """Decorate an entry whose many steps take long to compile if their loops are unrolled, without running faster."""
    return _entry(function, "long_entry")


def _entry(function: F, decorator: str) -> F:
    if config.DISABLE_JIT or is_plain(numba.__version__):
        return _cached(function, {})
    return _cached(_with_references(function), _options(decorator))


def _with_references(function: F) -> F:
    """Return a function that compiles another one as a step, and passes its named tuples to that step by reference."""
    names = {
        "by_reference": import_module("poolwise.kernels.references").by_reference,
        "body": _uncached(function, _options("body")),
    }
    caller = FunctionType(_call_body.__code__.replace(co_filename=function.__code__.co_filename), names, function.__name__)
    for name in ("__module__", "__qualname__", "__doc__"):
        setattr(caller, name, getattr(function, name))
    caller.body = function  # type: ignore[attr-defined]  # `python_code` runs it
    return cast(F, caller)


def _call_body(*arguments: object) -> object:
    """Code of a function that refers to names defined by `_with_references`."""
    return body(*by_reference(arguments))  # type: ignore[name-defined]  # noqa: F821


def step(function: F) -> F:
    """Decorate a part of an `entry`: it has no Python wrapper, no cache file and no machine code of its own."""
    return _uncached(function, _options("step"))


def inlined(function: F) -> F:
    """Decorate a step that LLVM inlines unless it is long; without Numba's internals it is like any other step."""
    return _uncached(function, _options("inlined"))


def _uncached(function: F, options: Mapping[str, Any]) -> F:
    return cast(F, njit(error_model="numpy", **options)(function))


def _cached(function: F, options: Mapping[str, Any]) -> F:
    package = Path(function.__code__.co_filename).parent.name
    if not (config.DISABLE_JIT or is_plain(numba.__version__)):
        dispatcher = njit(error_model="numpy", **options)(function)
        dispatcher._cache = import_module("poolwise.kernels.kernel_cache").KernelCache(function, _folders(package))
        return cast(F, dispatcher)
    before = config.CACHE_DIR
    config.CACHE_DIR = str(cache_folder(package))
    try:
        return cast(F, njit(cache=True, error_model="numpy", **options)(function))
    finally:
        config.CACHE_DIR = before


@cache
def cache_folder(package: str) -> Path:
    """Return the cache folder of a kernel package; a temporary one, with a warning, if the user's cache is not writable."""
    name = f"{package}-{_fingerprint(package, *_target())}"
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
    return bool(config.DISABLE_JIT) or any((folder / _mark(kind)).is_file() for folder in _folders(package))


def mark_compiled(package: str, kind: str) -> None:
    """Create the marker file that `is_compiled` checks."""
    (cache_folder(package) / _mark(kind)).touch()


def _mark(kind: str) -> str:
    return f"{kind.replace(' ', '-')}.compiled"


def _folders(package: str) -> tuple[Path, ...]:
    """Return the folders with compiled kernels of a package: the user's folder, and the wheel's folder if it suits this CPU."""
    shipped = SHIPPED / f"{package}-{_fingerprint(package, GENERIC, GENERIC_FEATURES)}"
    return (cache_folder(package), *((shipped,) if _runs_shipped() and shipped.is_dir() else ()))


@cache
def _runs_shipped() -> bool:
    """Return whether this CPU has all features of the kernels in a platform wheel."""
    if platform.machine() != "x86_64" or platform.system() != "Linux" or config.CPU_NAME is not None:
        return False
    host = llvmlite.binding.get_host_cpu_features()
    return all(host.get(feature.removeprefix("+"), False) for feature in GENERIC_FEATURES.split(","))


def _target() -> tuple[str, str]:
    """Return the CPU and the features that Numba compiles for: this computer's, unless the environment names others."""
    cpu = config.CPU_NAME or llvmlite.binding.get_host_cpu_name()
    features = config.CPU_FEATURES
    return cpu, llvmlite.binding.get_host_cpu_features().flatten() if features is None else features


def _cache_root() -> Path:
    for variable in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        if value := os.environ.get(variable):
            return Path(value)
    return Path.home() / ".cache"


def _fingerprint(package: str, cpu: str, features: str) -> str:
    digest = _hashed_sources(package).copy()
    way = "plain" if is_plain(numba.__version__) else "internals"
    python = ".".join(map(str, sys.version_info[:2]))
    for part in (python, numba.__version__, np.__version__, llvmlite.__version__, cpu, features, way):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:16]


@cache
def _hashed_sources(package: str) -> hashlib._Hash:
    """Return the hash of the names and the texts of the source files on which the kernels of a package depend."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    folders = (here, *(here / other for other in (package, *BUILDS_ON.get(package, ()))))
    for source in (Path(CONSTANTS), *(file for folder in folders for file in sorted(folder.glob("*.py")))):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest
