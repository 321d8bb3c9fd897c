"""Distributions of Poolwise other than the core; they extend it through entry points and share its version."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

DISTRIBUTIONS: Mapping[str, str] = {
    "poolwise_agents": "poolwise-agents",
    "poolwise_reproductions": "poolwise-reproductions",
}
"""Package -> distribution."""


@lru_cache(maxsize=1)
def extension_folders() -> Mapping[str, Path]:
    """Return package -> folder of the installed distributions; none of them is imported."""
    specs = {package: find_spec(package) for package in DISTRIBUTIONS}
    return {
        package: Path(spec.origin).parent for package, spec in specs.items() if spec is not None and spec.origin is not None
    }
