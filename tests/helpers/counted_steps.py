"""What a kernel does, counted in lines of its Python."""

import sys
from collections.abc import Callable
from types import FrameType


def plain(function: Callable[..., object]) -> Callable[..., object]:
    """Return a kernel as it is without the compiler."""
    python: Callable[..., object] = getattr(function, "py_func", function)
    return python


def steps(function: Callable[..., object], *arguments: object) -> int:
    """Number of lines that a kernel that calls no other one runs through."""
    count, before, python = 0, sys.gettrace(), plain(function)

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., object] | None:
        nonlocal count
        if frame.f_code is not python.__code__:  # a callback of the garbage collector
            return None
        count += event == "line"
        return trace

    sys.settrace(trace)
    try:
        python(*arguments)
    finally:
        sys.settrace(before)
    return count
