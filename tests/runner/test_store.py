"""Store: complete records or none, whatever happens to the process or the file."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.errors import InputError
from poolwise.runner import Record, Store
from poolwise.runner.store import _connected
from tests.helpers.kept_trials import spoil, written

RECORDS = {f"key{k}": Record({"square": k**2, "text": "é" * k}, {"txt": bytes([k]) * 5000, "bin": b""}) for k in range(8)}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A folder with stored records."""
    folder = tmp_path_factory.mktemp("store")
    with (store := Store(folder)).writing():
        for key, record in RECORDS.items():
            store.write(key, record, key, 1.0)
    return folder


def read(store: Store, key: str) -> Record | None:
    """Return a record with all its files, or None if any of them is missing."""
    content, files = store.content(key), {ending: store.read_file(key, ending) for ending in RECORDS[key].files}
    return None if content is None or None in files.values() else Record(content, files)


def test_records_are_read_back_and_no_other_file_is_left(filled):
    store = Store(filled)
    assert {key: read(store, key) for key in RECORDS} == RECORDS and all(map(store.holds, RECORDS))
    assert not store.holds("other") and store.content("other") is None and store.read_file("key1", "other") is None
    assert store.seconds("key1") == 1.0 and store.seconds("other") is None
    assert sorted(file.name for file in filled.iterdir()) == [".lock", "cells.sqlite"]
    assert [row[:2] for row in store.everything()] == sorted((key, end) for key in RECORDS for end in ("bin", "json", "txt"))


def test_rewritten_record_replaces_the_old_one(filled, tmp_path):
    shutil.copytree(filled, tmp_path / "out")
    with (store := Store(tmp_path / "out")).writing():
        store.write("key1", Record({"new": 1}, {"other": b"x"}))
    assert store.content("key1") == {"new": 1} and store.read_file("key1", "txt") is None and store.holds("key1")


@pytest.mark.parametrize("ending", ["json", "txt"])
def test_damaged_record_is_detected(filled, tmp_path, ending):
    shutil.copytree(filled, tmp_path / "out")
    spoil(tmp_path / "out", "key3", ending)
    store = Store(tmp_path / "out")
    assert store.damaged("key3") and not store.holds("key3") and read(store, "key3") is None
    assert store.holds("key4") and not store.damaged("key4") and not store.damaged("other")


def test_record_under_another_key_is_damaged(filled, tmp_path):
    shutil.copytree(filled, tmp_path / "out")
    with closing(sqlite3.connect(tmp_path / "out" / "cells.sqlite", isolation_level=None)) as connection:
        connection.execute("INSERT INTO records SELECT 'other', content, files, sha256 FROM records WHERE key = 'key2'")
        connection.execute("INSERT INTO files SELECT 'other', ending, content FROM files WHERE key = 'key2'")
    assert Store(tmp_path / "out").damaged("other")


@pytest.mark.parametrize("at", range(3590, 3640, 5))
def test_damaged_table_definitions_are_an_input_error_or_harmless(filled, tmp_path, at):
    """SQLite quotes table definitions in its messages, even damaged ones."""
    whole = (filled / "cells.sqlite").read_bytes()
    assert b"CREATE TABLE" in whole[3000:4096]
    (tmp_path / "cells.sqlite").write_bytes(whole[:at] + b"\x80\x80\x80\x80\x80" + whole[at + 5 :])
    store = Store(tmp_path)
    for key, record in RECORDS.items():
        try:
            assert read(store, key) in (None, record)
            list(store.everything())
        except InputError as error:
            assert str(store.file) in str(error)


@settings(max_examples=80)
@given(data=st.data())
def test_damaged_records_are_never_returned(filled, tmp_path_factory, data):
    """After truncation or changed bytes, a read returns the written record, None, or an InputError."""
    folder = tmp_path_factory.mktemp("damaged")
    whole = (filled / "cells.sqlite").read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    other = bytes(data.draw(st.lists(st.integers(0, 255), min_size=1, max_size=40)))
    cut = data.draw(st.booleans())
    (folder / "cells.sqlite").write_bytes(whole[:at] if cut else (whole[:at] + other + whole[at + len(other) :]))
    store = Store(folder)
    for key, record in RECORDS.items():
        try:
            stored = read(store, key)
            assert stored in (None, record)
            assert not store.holds(key) or stored == record
        except InputError as error:
            assert str(store.file) in str(error)


@pytest.mark.long
def test_killed_writer_leaves_complete_records(tmp_path):
    """Kill the writer while it writes, after different numbers of records: each stored record has all its files."""
    code = f"""
from tests.runner.test_store import RECORDS, Store
from poolwise.runner import Record
import itertools, pathlib
store = Store(pathlib.Path({str(tmp_path)!r}))
with store.writing():
    for k in itertools.count():
        print(k, flush=True)
        store.write(f"k{{k % 500}}", Record({{"n": k, "same": k}}, {{"a": b"%d" % k * 999, "b": b"%d" % k * 99}}))
"""
    for last in (1, 10, 35, 80):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment)
        assert writer.stdout is not None
        assert [int(writer.stdout.readline()) for _ in range(last + 1)] == [*range(last + 1)]
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        store = Store(tmp_path)
        for key in written(tmp_path):
            content = store.content(key)
            assert content is not None and store.holds(key) and content["n"] == content["same"]
            assert (
                store.read_file(key, "a") == b"%d" % content["n"] * 999
                and store.read_file(key, "b") == b"%d" % content["n"] * 99
            )
        assert len(written(tmp_path)) >= last


def test_file_that_is_not_a_database_is_an_error_and_is_closed(tmp_path, monkeypatch):
    opened = []

    def connect(uri):
        opened.append(_connected(uri))
        return opened[-1]

    monkeypatch.setattr("poolwise.runner.store._connected", connect)
    (tmp_path / "cells.sqlite").write_text("no database" * 100)
    expected = r"cells\.sqlite: cannot read or write the results: file is not a database"
    with pytest.raises(InputError, match=expected), Store(tmp_path).writing():
        raise AssertionError
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("SELECT 1")
    assert Store(tmp_path).content("key1") is None


def test_folder_in_place_of_the_database_is_an_error(tmp_path):
    (tmp_path / "cells.sqlite").mkdir()
    with pytest.raises(InputError, match=r"cells\.sqlite: .*unable to open") as caught, Store(tmp_path).writing():
        raise AssertionError
    assert caught.value.remedy == "check its permissions or move it elsewhere, then run the command again"


def test_readers_work_during_a_write(tmp_path):
    writer, reader = Store(tmp_path), Store(tmp_path)
    with writer.writing():
        for key, record in RECORDS.items():
            writer.write(key, record)
            assert read(reader, key) == record
    assert json.loads(next(reader.everything())[2].decode() or "{}") is not None


def test_full_disk_is_an_error(tmp_path, monkeypatch):
    with (store := Store(tmp_path)).writing():
        assert store._writer is not None
        store._writer.execute("PRAGMA max_page_count=20")
        with pytest.raises(InputError, match=r"No space left on device[^#]*free some space"):
            store.write("big", Record({}, {"a": bytes(1_000_000)}))
        assert not store.holds("big")


def test_write_requires_the_write_lock(filled):
    with pytest.raises(RuntimeError, match="not open for writing"):
        Store(filled).write("key1", Record({}))
