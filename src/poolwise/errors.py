"""Exceptions. An error that a user can cause states what is wrong, where, and how to fix it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from poolwise.user_code import with_location

SHOWN = 100
"""Number of known names up to which an error lists all of them; beyond it, the error lists the closest matches."""


class PoolwiseError(Exception):
    """Base class of the errors that Poolwise raises.

    Attributes
    ----------
    exit_code : exit code of the command line for this error

    Examples
    --------
    >>> import poolwise
    >>> issubclass(poolwise.InputError, poolwise.PoolwiseError), poolwise.InputError.exit_code
    (True, 2)
    """

    exit_code = 1


class InputError(PoolwiseError):
    """Invalid input: a file, a field, a name or an option.

    Parameters
    ----------
    message
        What is wrong, in one sentence.
    file, line, field
        Location of the input, if known.
    remedy
        How to fix it.

    Examples
    --------
    >>> import poolwise
    >>> print(poolwise.InputError("the time is missing", file="jobs.csv", line=3, remedy="write a time"))
    jobs.csv, line 3: the time is missing
      remedy: write a time
    """

    exit_code = 2
    path: tuple[str | int, ...] = ()
    """Keys and positions that lead to the value in the table that is being read; see `at`."""
    located = False
    """True if the error has its final location."""

    def __init__(
        self,
        message: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        field: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.message, self.file, self.line, self.field, self.remedy = message, file, line, field, remedy
        parts = (file, f"{file}"), (line, f"line {line}"), (field, f"field '{field}'")
        place = ", ".join(text for value, text in parts if value is not None and text)
        text = f"{place}: {message}" if place else message
        super().__init__(f"{text}\n  remedy: {remedy}" if remedy else text)

    def at(self, *path: str | int) -> InputError:
        """Return the error with a path prepended to its own, unless its location is final."""
        if not self.located and self.line is None:
            self.path = (*path, *self.path)
        return self

    def in_file(self, file: str | Path) -> InputError:
        """Return the error with a file added, unless it already names one."""
        if self.file is not None:
            return self
        return _rebuild_input_error(type(self), self.message, file, self.line, self.field, self.remedy)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_input_error, (type(self), self.message, self.file, self.line, self.field, self.remedy)


def _rebuild_input_error(
    kind: type[InputError],
    message: str,
    file: str | Path | None,
    line: int | None,
    field: str | None,
    remedy: str | None,
) -> InputError:
    """Unpickle an `InputError` that a worker process raised."""
    return kind(message, file=file, line=line, field=field, remedy=remedy)


class ManyErrors(InputError):
    """Several input errors in one; location, message and remedy are those of the first error, and the text contains all errors.

    Attributes
    ----------
    errors : the errors
    """

    errors: tuple[InputError, ...] = ()

    @classmethod
    def of(cls, errors: Sequence[InputError]) -> InputError:
        """Combine errors; a single error is returned unchanged."""
        single_errors = flat(errors)
        if len(single_errors) == 1:
            return single_errors[0]
        first = single_errors[0]
        many = cls(first.message, file=first.file, line=first.line, field=first.field, remedy=first.remedy)
        many.errors, many.located = tuple(single_errors), True
        many.args = ("\n".join(str(error) for error in single_errors),)
        return many

    def __reduce__(self) -> tuple[object, ...]:
        return (ManyErrors.of, (self.errors,)) if self.errors else super().__reduce__()


def flat(errors: Iterable[InputError]) -> list[InputError]:
    """Return the single errors that a combined error contains."""
    return [single for error in errors for single in (error.errors if isinstance(error, ManyErrors) else (error,))]


class Problems:
    """Collector of input errors, so that all of them are reported at once."""

    def __init__(self) -> None:
        self.errors: list[InputError] = []

    @contextmanager
    def attempt(self, *path: str | int) -> Iterator[None]:
        """Collect an InputError that is raised in the block; `path` leads to the value that the block reads."""
        try:
            yield
        except InputError as error:
            self.errors.append(error.at(*path))

    def finish(self, locate: Callable[[InputError], InputError] = lambda error: error) -> None:
        """Raise the collected errors, if any, with their locations; an error that occurred several times is reported once."""
        if self.errors:
            errors = flat(map(locate, self.errors))
            raise ManyErrors.of([*{str(error): error for error in errors}.values()])


@contextmanager
def errors_below(*path: str | int) -> Iterator[None]:
    """Prepend a path to the path of an InputError that is raised in the block."""
    try:
        yield
    except InputError as error:
        raise error.at(*path) from None


class UnknownNameError(InputError):
    """A name that does not exist; the remedy lists the closest matches."""

    @classmethod
    def of(
        cls,
        what: str,
        name: str,
        known: Iterable[str],
        *,
        file: str | Path | None = None,
        line: int | None = None,
        field: str | None = None,
    ) -> UnknownNameError:
        """Build the error for a `name` that is not among the `known` ones; `what` is the kind of name."""
        known = sorted({*known})
        same = [choice for choice in known if choice.lower() == name.lower()]
        near = same or difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        shown = known if len(known) <= SHOWN else sorted(difflib.get_close_matches(name, known, n=10, cutoff=0.0))
        choices = ", ".join(shown) + (f" and {len(known) - len(shown):,} others" if shown != known else "") or "none"
        remedy = f"did you mean '{near[0]}'? known: {choices}" if near else f"known: {choices}"
        return cls(f"unknown {what} '{name}'", file=file, line=line, field=field, remedy=remedy)


_SINGULARS = {"batches": "batch", "mixes": "mix", "power": "power table", "prices": "price list", "searches": "search"}


def singular(kind: str) -> str:
    """Return the name of one member of a registry group or catalog folder, in words.

    >>> singular("affinities"), singular("memory_profiles"), singular("prices")
    ('affinity', 'memory profile', 'price list')
    """
    if kind in _SINGULARS:
        return _SINGULARS[kind]
    return (f"{kind.removesuffix('ies')}y" if kind.endswith("ies") else kind.removesuffix("s")).replace("_", " ")


class InfeasibleError(PoolwiseError):
    """No assignment, plan or schedule meets the constraints."""

    exit_code = 3


class PolicyError(PoolwiseError):
    """A policy, scheduler or model broke its contract: NaN priorities, capacity allocated twice, a starving queue.

    Parameters
    ----------
    message
        What the object did wrong, in one sentence.
    by
        The object; if its class is user code, the message begins with the file and line of the class.

    Examples
    --------
    >>> import poolwise
    >>> raise poolwise.PolicyError("Mine returned NaN priorities")
    Traceback (most recent call last):
    ...
    poolwise.errors.PolicyError: Mine returned NaN priorities
    """

    exit_code = 1

    def __init__(self, message: str, *, by: object = None) -> None:
        super().__init__(message if by is None else with_location(by, message))
