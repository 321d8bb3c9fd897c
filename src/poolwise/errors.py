"""One exception tree. Every error that a user can cause says where it stands and what to do about it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from poolwise.user_code import said_of

SHOWN = 100
"""Of so many known names all are listed, of more those that are nearest to what was written."""


class PoolwiseError(Exception):
    """Root of all errors that Poolwise raises on purpose; `exit_code` is what the command line returns for it."""

    exit_code = 1


class InputError(PoolwiseError):
    """Something the user wrote cannot be used: a file, a field, a name, an option.

    Parameters
    ----------
    message
        What is wrong, in one sentence.
    file, line, field
        Where it stands, as far as known.
    remedy
        What to do about it.
    """

    exit_code = 2

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
        place = ", ".join(
            part
            for part in (
                str(file) if file is not None else "",
                f"line {line}" if line is not None else "",
                f"field '{field}'" if field is not None else "",
            )
            if part
        )
        text = f"{place}: {message}" if place else message
        super().__init__(f"{text}\n  remedy: {remedy}" if remedy else text)

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
    """Unpickle an `InputError` raised in a worker process."""
    return kind(message, file=file, line=line, field=field, remedy=remedy)


class ManyErrors(InputError):
    """Several things cannot be used; its place, message and remedy are those of the first, its text tells them all.

    Attributes
    ----------
    errors : each of them
    """

    errors: tuple[InputError, ...] = ()

    @classmethod
    def of(cls, errors: Sequence[InputError]) -> InputError:
        """Put errors together; one alone stays what it is."""
        flat = [one for error in errors for one in (error.errors if isinstance(error, ManyErrors) else (error,))]
        if len(flat) == 1:
            return flat[0]
        first = flat[0]
        many = cls(first.message, file=first.file, line=first.line, field=first.field, remedy=first.remedy)
        many.errors = tuple(flat)
        many.args = ("\n".join(str(error) for error in flat),)
        return many

    def __reduce__(self) -> tuple[object, ...]:
        return (ManyErrors.of, (self.errors,)) if self.errors else super().__reduce__()


class Problems:
    """Collects errors, so that the user is told of all of them at once."""

    def __init__(self) -> None:
        self._found: list[InputError] = []

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Keep an InputError that is raised inside."""
        try:
            yield
        except InputError as error:
            self._found.append(error)

    def finish(self) -> None:
        """Raise what was kept, if anything was; the same error is told once."""
        once = {str(error): error for error in self._found}
        if once:
            raise ManyErrors.of([*once.values()])


class UnknownNameError(InputError):
    """A name that nothing is registered under; the remedy lists the nearest ones."""

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
        """Build the error for an unknown `name` of kind `what` among the `known` ones."""
        known = sorted({*known})
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        shown = known if len(known) <= SHOWN else sorted(difflib.get_close_matches(name, known, n=10, cutoff=0.0))
        choices = ", ".join(shown) + (f" and {len(known) - len(shown):,} others" if shown != known else "") or "none"
        remedy = f"did you mean '{near[0]}'? known: {choices}" if near else f"known: {choices}"
        return cls(f"unknown {what} '{name}'", file=file, line=line, field=field, remedy=remedy)


class InfeasibleError(PoolwiseError):
    """The question has no answer: no assignment, plan or schedule meets the constraints."""

    exit_code = 3


class PolicyError(PoolwiseError):
    """A policy, scheduler or model broke its contract: NaN priorities, capacity given twice, a queue left to starve.

    `by` is the object that did; where it is the user's own its file and line stand before the message.
    """

    exit_code = 1

    def __init__(self, message: str, *, by: object = None) -> None:
        super().__init__(message if by is None else said_of(by, message))
