"""Examples at the end of each help page; tests run them."""

from __future__ import annotations

PROMPT = "$ "
TICKS = "--map 'submit:10s, duration:10s, memory:GB'"
"""Columns of the shipped table with times in ticks of 10 s."""


def examples(*commands: str, before: str = "") -> str:
    """Return the end of a help page: `before`, then commands as a user types them."""
    lines = [*([before] if before else []), "Examples:", *(f"{PROMPT}{command}" for command in commands)]
    return "\n\n".join(lines)
