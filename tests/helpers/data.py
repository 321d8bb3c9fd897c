"""Paths of test data: tests/data (terms and credits in its README), and full-size logs outside the repository.

The data in the repository covers every documented property. Logs that may not be redistributed, or are too large, are tested in
addition if they are available in ../shared/data.
"""

from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
PUBLISHED = DATA / "published"
LOGS = DATA / "logs"
SHARED_DATA = ROOT.parent / "shared" / "data"


def available_cases(*cases: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return the cases (path below ../shared/data, more values) whose file exists, with the absolute path."""
    return [(SHARED_DATA / name, *values) for name, *values in cases if (SHARED_DATA / name).is_file()]
