"""Contents of a store of records, and ways to damage it."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from poolwise.runner import Store


def content(out: Path) -> dict[str, bytes]:
    """Return all bytes that must not depend on how and where tasks ran."""
    contents = {f"{key}.{ending}": content for key, ending, content in Store(out).everything()}
    tables = [file for name in ("results.parquet", "results.csv") if (file := out / name).is_file()]
    return contents | {file.name: file.read_bytes() for file in tables}


def written(out: Path) -> dict[str, int]:
    """Return the key of each record -> its row number, which a rewrite changes."""
    return dict(_execute(out, "SELECT key, rowid FROM records ORDER BY key"))


def spoil(out: Path, key: str, ending: str = "json") -> None:
    """Change the last byte of a record's content or of one of its files."""
    table, which = ("records", "") if ending == "json" else ("files", f"AND ending = '{ending}'")
    ((before,),) = _execute(out, f"SELECT content FROM {table} WHERE key = ? {which}", key)
    _execute(out, f"UPDATE {table} SET content = ? WHERE key = ? {which}", before[:-1] + b"?", key)


def forget(out: Path, *keys: str) -> None:
    """Remove records."""
    for key in keys:
        _execute(out, "DELETE FROM records WHERE key = ?", key)


def _execute(out: Path, query: str, *values: Any) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(Store(out).file, isolation_level=None)) as connection:
        return connection.execute(query, values).fetchall()
