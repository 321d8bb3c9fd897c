"""User code that runs inside Poolwise: the location of its classes, and error messages for its failures."""

from __future__ import annotations

import inspect
import sys
import sysconfig
import traceback
from pathlib import Path

from poolwise.distributions import DISTRIBUTIONS, extension_folders

_PACKAGE = Path(__file__).parent
_INSTALLED = tuple(
    Path(path).resolve()
    for name, path in sysconfig.get_paths().items()
    if name in ("stdlib", "platstdlib", "purelib", "platlib")
)


def _own_folders() -> tuple[Path, ...]:
    """Return the folders of Poolwise and its extensions, which may be installed from a checkout."""
    return _PACKAGE, *extension_folders().values()


def loads_user_code() -> bool:
    """Return whether this process has imported a module outside Poolwise, Python and installed packages."""
    own = tuple(f"{path}/" for path in (*_own_folders(), *_INSTALLED))
    files = (getattr(module, "__file__", None) for module in [*sys.modules.values()])
    return not all(file is None or str(Path(file).resolve()).startswith(own) for file in files)


def class_location(thing: object) -> tuple[str, int] | None:
    """Return the file and line of an object's class; None if Poolwise defines the class or the location is unknown."""
    kind = thing if isinstance(thing, type) else type(thing)
    if kind.__module__.partition(".")[0] in ("poolwise", "builtins", *DISTRIBUTIONS):
        return None
    try:
        return str(inspect.getsourcefile(kind)), inspect.getsourcelines(kind)[1]
    except (OSError, TypeError):
        return None


def with_location(thing: object, message: str) -> str:
    """Prefix a message about an object with the file and line of its class if the class is user code."""
    location = class_location(thing)
    return message if location is None else f"{_short(location[0])}, line {location[1]}: {message}"


def user_failure(error: BaseException) -> str | None:
    """Describe an exception that user code raised, with file, line and function; None if it has another origin.

    The origin is user code if the failing call passed through Poolwise, and then through a file outside Poolwise, Python and
    installed packages; the last such line is named.
    """
    inside, origin = False, None
    for frame in traceback.extract_tb(error.__traceback__):
        file = Path(frame.filename)
        if any(file.is_relative_to(own) for own in _own_folders()):
            inside = True
        elif inside and file.is_file() and not any(file.resolve().is_relative_to(other) for other in _INSTALLED):
            origin = frame
    if origin is None:
        return None
    message = " ".join(str(error).split())
    raised = f"{type(error).__name__}: {message}" if message else type(error).__name__
    line = f"\n  {origin.line}" if origin.line else ""
    return f"{_short(origin.filename)}, line {origin.lineno}, in {origin.name}: {raised}{line}"


def _short(file: str) -> str:
    """Return a path relative to the working folder if it is inside that folder."""
    path = Path(file)
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else file
