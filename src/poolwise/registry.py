"""Registry that finds policies, models, formats and other classes by name.

A class in the package registers itself with `@register(group, name)` in the file that defines it; no other file changes.
Another package registers through entry points of the same group ("poolwise.orders", ...). Your own files need neither:
"path/to/file.py:Name" and "module:Name" work wherever a name does.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import sys
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

from poolwise.errors import InputError, UnknownNameError, singular
from poolwise.interfaces import OrderKind
from poolwise.interfaces.capped import KIND_CLASSES
from poolwise.interfaces.registration import REGISTERED
from poolwise.interfaces.registration import register as register
from poolwise.user_code import class_location, user_failure

GROUPS: Mapping[str, tuple[str, ...]] = {
    "orders": ("poolwise.policies.order",),
    "backfills": ("poolwise.policies.backfill",),
    "placements": tuple(
        f"poolwise.policies.placement.{resource}" for resource in ("memory", "nvme", "devices", "nodes", "units")
    ),
    "admissions": ("poolwise.policies.admission",),
    "preemptions": ("poolwise.policies.preemption",),
    "costs": ("poolwise.policies.cost",),
    "models": ("poolwise.performance",),
    "schedulers": ("poolwise.schedulers",),
    "formats": ("poolwise.traces",),
    "generators": ("poolwise.traces.generators",),
    "memory_uses": ("poolwise.traces.memory_use",),
    "machine_formats": ("poolwise.files.machine_formats",),
    "affinities": ("poolwise.traces.affinity",),
    "metrics": ("poolwise.metrics.measures",),
    "methods": ("poolwise.batch.methods",),
    "reproductions": (),
    "plans": ("poolwise.plans",),
    "plots": ("poolwise.report.notebook",),
}
"""Group -> packages (or a module) that register its classes when they are imported; other distributions use entry points."""

FILE = "file"
InputFile = Annotated[str, FILE]
"""Type of a setting that is a file, relative to the file that contains the setting, or "catalog:NAME".

The content of the file is part of the key of a run. `pathlib.Path` has the same effect.
"""


class SettingsOf(NamedTuple):
    """Annotation of the settings of another component, whose name is in a field of the same class.

    Attributes
    ----------
    group, field : registry group of the component, and the field that contains its name
    """

    group: str
    field: str


_loaded: set[str] = set()


def names(group: str) -> list[str]:
    """Return the names registered in a group, sorted."""
    _load(group)
    return sorted({*REGISTERED[group], *_installed(f"poolwise.{group}", tuple(sys.path))})


@cache
def _installed(group: str, path: tuple[str, ...]) -> frozenset[str]:
    """Return the names of the entry points of a group; `path` is `sys.path`, on which they depend."""
    return frozenset(point.name for point in entry_points(group=group))


def find(group: str, name: str) -> Any:
    """Find the object registered under a name, or load "file.py:Name" or "module:Name".

    Raises UnknownNameError or InputError.
    """
    if ":" in name:
        return load(name)
    if name not in REGISTERED.get(group, ()):
        _load_file_named(group, name)
    if name not in REGISTERED.get(group, ()):
        _load(group)
    if name in REGISTERED[group]:
        return REGISTERED[group][name]
    for point in entry_points(group=f"poolwise.{group}", name=name):
        return _load_entry_point(point)
    raise UnknownNameError.of(singular(group), name, names(group), field=_field(group))


def make(group: str, name: str, /, **settings: Any) -> Any:
    """Find a class and configure it; a name may also stand for a configured object, which takes no settings.

    Raises InputError or UnknownNameError for settings that the class does not have.
    """
    registered = find(group, name)
    _check_contract(group, registered)
    if not isinstance(registered, type):
        if settings:
            problem = f"'{name}' is a configured object and takes no settings"
            raise InputError(problem, field=next(iter(settings)), remedy="remove the settings, or name a class")
        return registered
    names, takes_any = _accepted_settings(registered)
    if not takes_any and (unknown := [key for key in settings if key not in names]):
        raise UnknownNameError.of(f"setting of {singular(group)} '{name}':", unknown[0], names, field=unknown[0])
    try:
        return registered(**settings)
    except TypeError as error:
        problem = f"{singular(group)} '{name}': {error}"
        raise InputError(problem, field=_field(group), remedy=_settings_text(registered)) from error


def _field(group: str) -> str:
    """Return the key of files and the argument of functions that name a member of a group."""
    return singular(group).replace(" ", "_")


_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "orders": ("kind", "priority"),
    "backfills": ("select",),
    "placements": ("place",),
    "admissions": ("admits",),
    "preemptions": ("stops",),
    "models": ("setup", "slowdown"),
    "schedulers": ("open",),
}
"""Group -> attributes and methods that every member must have."""


def _check_contract(group: str, component: Any) -> None:
    """Raise InputError, with file and line, for a user's class that lacks what its group requires."""
    location = class_location(component)
    if location is None:
        return
    file, line = location
    name = component.__name__ if isinstance(component, type) else type(component).__name__
    kinds = ", ".join(f'"{kind}"' for kind in get_args(OrderKind))
    abstract: frozenset[str] = getattr(component, "__abstractmethods__", frozenset())
    for part in (*_REQUIRED.get(group, ()), *sorted(abstract)):
        if part in abstract or not hasattr(component, part):
            remedy = f"set kind to one of {kinds} in the class" if part == "kind" else f"define the method {part}"
            raise InputError(f"{name} has no {part}", file=file, line=line, field=part, remedy=remedy)
    if group == "orders" and component.kind not in get_args(OrderKind):
        problem = f"{name} has the unknown kind {component.kind!r}"
        raise InputError(problem, file=file, line=line, field="kind", remedy=f"use one of {kinds}")
    base = KIND_CLASSES.get(component.kind) if group == "orders" else None
    if base is not None and not issubclass(component if isinstance(component, type) else type(component), base):
        problem = f"{name} has the kind {component.kind!r} but does not derive from {base.__name__}"
        remedy = f"derive it from poolwise.interfaces.{base.__name__} and define its methods"
        raise InputError(problem, file=file, line=line, field="kind", remedy=remedy)


@lru_cache(maxsize=1024)
def _accepted_settings(implementation: type) -> tuple[tuple[str, ...], bool]:
    """Return the names of the settings that a class takes, and whether it takes any others."""
    parameters = inspect.signature(implementation).parameters.values()
    names = tuple(p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD))
    return names, any(p.kind is p.VAR_KEYWORD for p in parameters)


def _settings_text(implementation: type) -> str:
    names, _ = _accepted_settings(implementation)
    return f"its settings: {', '.join(names)}" if names else "it takes no settings"


def load(reference: str) -> Any:
    """Import "file.py:Name" or "module:Name"."""
    where, _, attribute = reference.rpartition(":")
    if where.endswith(".py"):
        path = Path(where).resolve()
        if not path.is_file():
            raise InputError(f"no such file: {where}", field=reference, remedy="write FILE.py:NAME")
        module_name = f"poolwise_user_{path.stem}_{abs(hash(path)):x}"
        module = sys.modules.get(module_name)
        if module is None:
            spec = importlib.util.spec_from_file_location(module_name, path)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[module_name] = module
            try:
                spec.loader.exec_module(module)
            except (Exception, SystemExit) as error:
                del sys.modules[module_name]
                cause = user_failure(error) or repr(error)
                raise InputError(f"cannot import the file: {cause}", file=where, remedy="correct the file") from error
    else:
        try:
            module = importlib.import_module(where)
        except ImportError as error:
            raise InputError(f"cannot import '{where}': {error}", remedy="write MODULE:NAME or FILE.py:NAME") from error
    if not hasattr(module, attribute):
        raise UnknownNameError.of("name", attribute, [n for n in vars(module) if not n.startswith("_")], file=where)
    return getattr(module, attribute)


def _load_entry_point(point: EntryPoint) -> Any:
    """Load an object that another distribution registers; raises an InputError that names the distribution if that fails."""
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        distribution = point.dist.name if point.dist else "an unnamed distribution"
        problem = f"cannot load '{point.name}' of {distribution}: {error}"
        raise InputError(problem, field=point.group, remedy=f"update or uninstall {distribution}") from error


def _load_file_named(group: str, name: str) -> None:
    """Import only the files named after a class, if any: other files of the group may load a solver or compile kernels."""
    for package_name in GROUPS.get(group, ()):
        package, stem = importlib.import_module(package_name), name.replace("-", "_")
        if stem in (module.name for module in pkgutil.iter_modules(getattr(package, "__path__", ()))):
            importlib.import_module(f"{package_name}.{stem}")


def _load(group: str) -> None:
    """Import the modules that register the classes of a group, once; raises UnknownNameError for an unknown group."""
    if group not in GROUPS:
        raise UnknownNameError.of("group", group, GROUPS)
    if group in _loaded:
        return
    for package_name in GROUPS[group]:
        package = importlib.import_module(package_name)
        for module in pkgutil.iter_modules(getattr(package, "__path__", ())):
            importlib.import_module(f"{package_name}.{module.name}")
    _loaded.add(group)
