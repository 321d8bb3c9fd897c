"""Option groups: options that several commands share, declared once as the fields of a dataclass.

A command takes a whole group as one parameter; `expand` turns it into the single options that typer sees.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache, wraps
from typing import Any, get_type_hints


def expand(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command in which each option group is replaced by its options.

    Fields of a group are annotated as parameters of a typer command: `Annotated[int, typer.Option(help=...)] = 0`.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if isinstance(kind, type) and is_dataclass(kind):
            groups[name] = kind
            parameters += _options(kind)
        else:
            parameters.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def call(**given: Any) -> Any:
        made = {name: kind(**{field.name: given.pop(field.name) for field in fields(kind)}) for name, kind in groups.items()}
        return command(**given, **made)

    call.__dict__["__signature__"] = inspect.Signature(parameters)
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


@cache
def _options(group: type) -> tuple[inspect.Parameter, ...]:
    """Return the fields of a group as parameters."""
    types = get_type_hints(group, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return tuple(
        inspect.Parameter(field.name, keyword, default=_default(field), annotation=types[field.name]) for field in fields(group)
    )


def _default(field: Field[Any]) -> Any:
    if field.default is not MISSING:
        return field.default
    return inspect.Parameter.empty if field.default_factory is MISSING else field.default_factory()
