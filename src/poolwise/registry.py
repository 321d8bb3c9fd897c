"""Where policies are found by name.

A class in the package registers itself with `@register(group, name)` in the file that defines it; nothing else needs to be
edited. Another package registers through entry points of the same group ("poolwise.orders", ...). A file of your own
needs neither: "path/to/file.py:Name" and "module:Name" work wherever a name does.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar, get_args

from poolwise.errors import InputError, UnknownNameError
from poolwise.interfaces import KIND_CLASSES, OrderKind
from poolwise.user_code import failure_in, place_of

T = TypeVar("T")

GROUPS: Mapping[str, tuple[str, ...]] = {
    "orders": ("poolwise.policies.order",),
    "backfills": ("poolwise.policies.backfill",),
    "placements": tuple(
        f"poolwise.policies.placement.{resource}" for resource in ("memory", "nvme", "devices", "nodes", "units")
    ),
    "admissions": ("poolwise.policies.admission",),
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
    "reproductions": ("poolwise.reproductions",),
    "plans": ("poolwise.plans",),
}
"""Group -> packages whose modules are imported to fill it."""

_registered: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}
_loaded: set[str] = set()


def register(group: str, name: str) -> Callable[[T], T]:
    """Class decorator: make `name` known in `group`."""

    def keep(thing: T) -> T:
        if name in _registered[group] and _registered[group][name] is not thing:
            raise ValueError(f"'{name}' is registered twice in {group}")
        _registered[group][name] = thing
        return thing

    return keep


def names(group: str) -> list[str]:
    """Names known in a group, sorted."""
    _load(group)
    return sorted({*_registered[group], *(point.name for point in entry_points(group=f"poolwise.{group}"))})


def find(group: str, name: str) -> Any:
    """Look up what is registered, or load "file.py:Name" / "module:Name".

    Raises UnknownNameError or InputError.
    """
    if ":" in name:
        return load(name)
    if name not in _registered.get(group, ()):
        _load(group)
    if name in _registered[group]:
        return _registered[group][name]
    for point in entry_points(group=f"poolwise.{group}", name=name):
        return _load_point(point)
    raise UnknownNameError.of(group.rstrip("s"), name, names(group), field=group.rstrip("s"))


def make(group: str, name: str, /, **settings: Any) -> Any:
    """Find a class and configure it; an object that is already configured is taken as it is.

    Raises InputError for settings that it does not have.
    """
    found = find(group, name)
    _check_contract(group, found)
    if not isinstance(found, type):
        if settings:
            raise InputError(f"'{name}' is configured already and takes no settings", field=next(iter(settings)))
        return found
    known, taken = _named(found), inspect.signature(found).parameters.values()
    if not any(one.kind is one.VAR_KEYWORD for one in taken) and (foreign := [key for key in settings if key not in known]):
        raise UnknownNameError.of(f"setting of {group.rstrip('s')} '{name}':", foreign[0], known, field=foreign[0])
    try:
        return found(**settings)
    except TypeError as error:
        raise InputError(f"{group.rstrip('s')} '{name}': {error}", field=group.rstrip("s"), remedy=_settings(found)) from error


_NEEDED: Mapping[str, tuple[str, ...]] = {
    "orders": ("kind", "priority"),
    "backfills": ("select",),
    "placements": ("place",),
    "admissions": ("admits",),
    "models": ("setup", "slowdown"),
    "schedulers": ("open",),
}
"""Group -> what a thing must have to be used there."""


def _check_contract(group: str, found: Any) -> None:
    """Raise InputError, with file and line, for something of the user's own that lacks what its group needs."""
    place = place_of(found)
    if place is None:
        return
    name = found.__name__ if isinstance(found, type) else type(found).__name__
    kinds = ", ".join(f'"{kind}"' for kind in get_args(OrderKind))
    abstract: frozenset[str] = getattr(found, "__abstractmethods__", frozenset())
    for part in (*_NEEDED.get(group, ()), *sorted(abstract)):
        if part in abstract or not hasattr(found, part):
            remedy = f"write kind = one of {kinds} in the class" if part == "kind" else f"write the method {part}"
            raise InputError(f"{name} has no {part}", file=place[0], line=place[1], field=part, remedy=remedy)
    if group == "orders" and found.kind not in get_args(OrderKind):
        raise InputError(
            f"{name} is of kind {found.kind!r}", file=place[0], line=place[1], field="kind", remedy=f"write one of {kinds}"
        )
    needed = KIND_CLASSES.get(found.kind) if group == "orders" else None
    if needed is not None and not issubclass(found if isinstance(found, type) else type(found), needed):
        remedy = f"derive it from poolwise.interfaces.{needed.__name__} and give what that asks for"
        problem = f"{name} is {found.kind}, but no {needed.__name__}"
        raise InputError(problem, file=place[0], line=place[1], field="kind", remedy=remedy)


def _named(found: type) -> list[str]:
    """Names of the settings that a class takes."""
    taken = inspect.signature(found).parameters.values()
    return [one.name for one in taken if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]


def _settings(found: type) -> str:
    known = _named(found)
    return f"its settings: {', '.join(known)}" if known else "it takes no settings"


def load(reference: str) -> Any:
    """Import "file.py:Name" or "module:Name"."""
    where, _, attribute = reference.rpartition(":")
    if where.endswith(".py"):
        path = Path(where).resolve()
        if not path.is_file():
            raise InputError(f"no such file: {where}", field=reference, remedy="give FILE.py:NAME")
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
                said = failure_in(error) or repr(error)
                raise InputError(f"it cannot be imported: {said}", file=where, remedy="correct the file") from error
    else:
        try:
            module = importlib.import_module(where)
        except ImportError as error:
            raise InputError(f"cannot import '{where}': {error}", remedy="give MODULE:NAME or FILE.py:NAME") from error
    if not hasattr(module, attribute):
        raise UnknownNameError.of("name", attribute, [n for n in vars(module) if not n.startswith("_")], file=where)
    return getattr(module, attribute)


def _load_point(point: EntryPoint) -> Any:
    """Load what another distribution registers; raises InputError, which names the distribution, where that fails."""
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        whose = point.dist.name if point.dist else "an unnamed distribution"
        problem = f"'{point.name}' of {whose} cannot be loaded: {error}"
        raise InputError(problem, field=point.group, remedy=f"update or uninstall {whose}") from error


def _load(group: str) -> None:
    if group not in GROUPS:
        raise UnknownNameError.of("group", group, GROUPS)
    if group in _loaded:
        return
    for package_name in GROUPS[group]:
        package = importlib.import_module(package_name)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package_name}.{module.name}")
    _loaded.add(group)
