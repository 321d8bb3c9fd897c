"""Count the executed Python lines of a kernel."""

import sys
from collections.abc import Callable
from types import FrameType


def plain(function: Callable[..., object]) -> Callable[..., object]:
    """Return the Python function of a kernel."""
    python: Callable[..., object] = getattr(function, "py_func", function)
    return python


def steps(function: Callable[..., object], *arguments: object) -> int:
    """Return the number of lines executed by a kernel that calls no other one."""
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
