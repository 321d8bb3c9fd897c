"""Claims, headlines, questions, recorded figures and studies of each paper."""

from __future__ import annotations

from pathlib import Path

from poolwise import catalog

FOLDER = Path(__file__).parent


def find(kind: str, name: str) -> Path:
    """Return the path of a file of a kind, such as "claims" or "studies"; raise UnknownNameError if there is none."""
    return catalog.find(kind, name, folder=FOLDER)
