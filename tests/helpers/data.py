"""Data of the tests: what stands in tests/data (terms and credits in its README), and full-size logs beside the project.

Every promise is tested with what stands in the repository. Logs that may not be redistributed, or are too large for it, are
read in addition where somebody has put them into ../shared/data.
"""

from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
PUBLISHED = DATA / "published"
LOGS = DATA / "logs"
BESIDE = ROOT.parent / "shared" / "data"


def beside(*cases: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return those of the cases (name below ../shared/data, more values) whose file is there, with its path for the name."""
    return [(BESIDE / name, *values) for name, *values in cases if (BESIDE / name).is_file()]
