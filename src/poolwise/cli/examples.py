"""Examples at the end of the help of each command; tests run them."""

from __future__ import annotations

PROMPT = "$ "
TICKS = "--map 'submit:10s, duration:10s, memory:GB'"
"""Columns of the shipped table whose times are ticks of 10 s."""


def examples(*commands: str, before: str = "") -> str:
    """Text for the end of a help page: commands as they are typed, after text that the page has already."""
    lines = [*([before] if before else []), "Examples:", *(f"{PROMPT}{command}" for command in commands)]
    return "\n\n".join(lines)
