"""Code of the user's own that runs inside Poolwise: where it stands, and what to say when it fails."""

from __future__ import annotations

import inspect
import sysconfig
import traceback
from pathlib import Path

_PACKAGE = Path(__file__).parent
_OTHERS = tuple(
    Path(path).resolve()
    for name, path in sysconfig.get_paths().items()
    if name in ("stdlib", "platstdlib", "purelib", "platlib")
)


def place_of(thing: object) -> tuple[str, int] | None:
    """File and line of an object's class that stands outside Poolwise; None for Poolwise's own, and where it is unknown."""
    kind = thing if isinstance(thing, type) else type(thing)
    if kind.__module__.partition(".")[0] in ("poolwise", "builtins"):
        return None
    try:
        return str(inspect.getsourcefile(kind)), inspect.getsourcelines(kind)[1]
    except (OSError, TypeError):
        return None


def said_of(thing: object, message: str) -> str:
    """Return a message about an object, with its file and line before it where it is the user's own."""
    place = place_of(thing)
    return message if place is None else f"{_short(place[0])}, line {place[1]}: {message}"


def failure_in(error: BaseException) -> str | None:
    """One message for an exception that the user's own code raised: file, line, function; None if it came from elsewhere.

    It is theirs if the call that failed went through a file outside Poolwise, Python and installed packages, after Poolwise
    had begun: the last such line is named.
    """
    inside, found = False, None
    for frame in traceback.extract_tb(error.__traceback__):
        file = Path(frame.filename)
        if file.is_relative_to(_PACKAGE):
            inside = True
        elif inside and file.is_file() and not any(file.resolve().is_relative_to(other) for other in _OTHERS):
            found = frame
    if found is None:
        return None
    said = " ".join(str(error).split())
    what = f"{type(error).__name__}: {said}" if said else type(error).__name__
    line = f"\n  {found.line}" if found.line else ""
    return f"{_short(found.filename)}, line {found.lineno}, in {found.name}: {what}{line}"


def _short(file: str) -> str:
    """Path as the user would write it: relative to the working folder where it is below that."""
    path = Path(file)
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else file
