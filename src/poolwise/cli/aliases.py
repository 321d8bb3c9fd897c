"""Old forms of commands and options: each still works until the release that removes it, and prints one warning.

The table lists them all. A form is a command as a user types it: words in lower case are typed as they are, words in
capitals are placeholders. Placeholders after an option are its value, the others are arguments.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

SNAPSHOT = "SNAPSHOT"
"""Placeholder of an argument that is a folder of `poolwise snapshot`."""


@dataclass(frozen=True)
class Alias:
    """An old form of a command or option.

    Attributes
    ----------
    old, new : the old form and the one that replaces it
    removed_in : release in which the old form stops working
    """

    old: str
    new: str
    removed_in: str = "0.2.0"

    @cached_property
    def before(self) -> Form:
        """The old form, parsed."""
        return Form.of(self.old)

    @cached_property
    def after(self) -> Form:
        """The new form, parsed."""
        return Form.of(self.new)


ALIASES: tuple[Alias, ...] = (
    Alias("check", "check-policy"),
    Alias("node-agent", "agent devices"),
    Alias("agent node", "agent memory"),
    Alias("agent memory --let-go", "agent memory --release"),
    Alias("forecast --backtest LOG", "forecast backtest LOG"),
    Alias("forecast --live CLUSTER", "forecast live CLUSTER"),
    Alias("forecast DIR", "forecast state DIR"),
    Alias("forecast live kubernetes --partition NAME", "forecast live kubernetes --name NAME"),
    Alias("explain --live JOB --cluster CLUSTER", "explain live CLUSTER JOB"),
    Alias("explain --live JOB", "explain live slurm JOB"),
    Alias("explain live kubernetes --partition NAME", "explain live kubernetes --name NAME"),
    Alias("explain LOG JOB --machine MACHINE", "explain log LOG JOB --machine MACHINE"),
    Alias("explain LOG JOB --processors N", "explain log LOG JOB --processors N"),
    Alias("explain LOG JOB --order NAME", "explain log LOG JOB --order NAME"),
    Alias("explain RUN JOB", "explain run RUN JOB"),
    Alias("simulate --run FILE", "simulate rerun FILE"),
    Alias("simulate --format vinesim", "simulate vinesim"),
    Alias("simulate SNAPSHOT", "simulate snapshot SNAPSHOT"),
    Alias("simulate snapshot --unsaid TIME", "simulate snapshot --default-runtime TIME"),
    Alias("profile measure --longest TIME", "profile measure --timeout TIME"),
    Alias("live slurm --give-back", "live slurm --release"),
    Alias("live kubernetes --attach SECONDS", "live kubernetes --attach-timeout SECONDS"),
)
"""Every old form. Of several that match a command the first applies; then the result is looked up again."""


@dataclass(frozen=True)
class Form:
    """A parsed form.

    Attributes
    ----------
    words : names of the command
    options : option -> its value (a placeholder, or a text to be typed), None for a flag
    arguments : placeholders of arguments
    """

    words: tuple[str, ...]
    options: Mapping[str, str | None] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> Form:
        """Parse a form."""
        words: list[str] = []
        options: dict[str, str | None] = {}
        arguments: list[str] = []
        left = text.split()
        while left:
            word = left.pop(0)
            if word.startswith("--"):
                options[word] = left.pop(0) if left and not left[0].startswith("--") else None
            else:
                (arguments if word.isupper() else words).append(word)
        return cls(tuple(words), options, tuple(arguments))


def replace_old_forms(arguments: Sequence[str], root: Any) -> tuple[list[str], str]:
    """Rewrite a command line in the current grammar.

    `root` is the click group of the whole command line. Returns the arguments, and a warning if any form was old.
    """
    words, used = [*arguments], []
    flags = _flags(root)
    while (found := _match(words, root, flags)) is not None:
        alias, words = found
        used.append(alias)
    if not used:
        return words, ""
    shown = shlex.join(["poolwise", *words])
    return words, f"`poolwise {used[0].old}` is deprecated and will be removed in {used[0].removed_in}; use `{shown}`"


def _match(words: Sequence[str], root: Any, flags: AbstractSet[str]) -> tuple[Alias, list[str]] | None:
    """Return the first alias that applies, and the rewritten words; None if there is none."""
    depth = _depth(words, root)
    for alias in ALIASES:
        names = alias.before.words
        if depth <= len(names) and tuple(words[: len(names)]) == names:
            command = _command(names, root)
            rest = _rewrite(alias, words[len(names) :], flags, _passes_arguments_on(command))
            if rest is not None:
                return alias, [*alias.after.words, *rest]
    return None


def _rewrite(alias: Alias, rest: Sequence[str], flags: AbstractSet[str], options_first: bool) -> list[str] | None:
    """Return the rewritten words after the names of a command; None if the old form does not match.

    With `options_first`, options after the first argument belong to another program.
    """
    before, after = alias.before, alias.after
    values: dict[str, str] = {}
    left = [*rest]
    for option, wanted in before.options.items():
        place = _find(left, option)
        if place is None or (options_first and _arguments(left[:place], flags)):
            return None
        width, value = _value(left, place, takes_one=wanted is not None)
        if wanted is not None and not wanted.isupper() and value != wanted:
            return None
        kept = next((name for name, known in after.options.items() if known == wanted), None)
        if kept is None:
            left[place : place + width] = []
        else:
            left[place : place + width] = [kept] if value is None else [kept, value]
        values[wanted or option] = value or ""
    if before.arguments and not _fit(before.arguments, _arguments(rest, flags)):
        return None
    moved = [values[name] for name in after.arguments if name not in before.arguments]
    return [*moved, *left]


def _fit(placeholders: Sequence[str], given: Sequence[str]) -> bool:
    """Check whether arguments match the placeholders in number and kind."""
    if len(given) != len(placeholders):
        return False
    folders = [Path(word) for placeholder, word in zip(placeholders, given, strict=True) if placeholder == SNAPSHOT]
    return all(folder.is_dir() and _is_state(folder) for folder in folders)


def _is_state(folder: Path) -> bool:
    from poolwise.files.state import is_state

    return is_state(folder)


def _depth(words: Sequence[str], root: Any) -> int:
    """Count the leading words that name commands."""
    return next((k for k in range(len(words)) if _command(words[: k + 1], root) is None), len(words))


def _command(names: Sequence[str], root: Any) -> Any:
    """Return the command with these names, or None."""
    command = root
    for name in names:
        command = getattr(command, "commands", {}).get(name)
    return command


def _passes_arguments_on(command: Any) -> bool:
    """Check whether a command runs another program, whose options follow its own."""
    return command is not None and not command.context_settings.get("allow_interspersed_args", True)


def _find(words: Sequence[str], option: str) -> int | None:
    """Return the position of an option, written `--option VALUE` or `--option=VALUE`."""
    for place, word in enumerate(words):
        if word == "--":
            return None
        if word == option or word.startswith(f"{option}="):
            return place
    return None


def _value(words: Sequence[str], place: int, *, takes_one: bool) -> tuple[int, str | None]:
    """Return how many words an option takes, and its value."""
    _, equals, value = words[place].partition("=")
    if equals:
        return 1, value
    return (2, words[place + 1]) if takes_one and place + 1 < len(words) else (1, None)


def _arguments(words: Sequence[str], flags: AbstractSet[str]) -> list[str]:
    """Return the words that are neither options nor their values."""
    found: list[str] = []
    left = [*words]
    while left:
        word = left.pop(0)
        if word == "--":
            return found + left
        if not word.startswith("-") or word == "-":
            found.append(word)
        elif "=" not in word and word not in flags and left:
            left.pop(0)
    return found


def _flags(command: Any) -> set[str]:
    """Return the options without a value, of a command and all commands in it."""
    found = {"--help"}
    for parameter in command.params:
        if getattr(parameter, "is_flag", False):
            found.update(parameter.opts, parameter.secondary_opts)
    for inner in getattr(command, "commands", {}).values():
        found |= _flags(inner)
    return found
