"""Exports of sacct with delimiters other than that of --parsable2, as `--delimiter` sets them and tables have them."""

import csv
from pathlib import Path

import pytest

from poolwise import catalog
from poolwise.errors import InputError
from poolwise.model import Machine
from poolwise.traces import read
from tests.helpers.same_jobs import assert_same_jobs

MACHINE = Machine.of_racks(2, 16, local=65536, cores=32)
ROWS = [line.split("|") for line in catalog.find("traces", "example-sacct.txt").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("delimiter", [";", "\t"])
@pytest.mark.parametrize("end", ["", "{}"])
def test_other_delimiters_give_the_same_jobs(tmp_path: Path, delimiter: str, end: str) -> None:
    path = tmp_path / "example-sacct.txt"
    path.write_text("".join(delimiter.join(row) + end.format(delimiter) + "\n" for row in ROWS), "utf-8")
    assert_same_jobs(read(path, MACHINE), read("catalog:example-sacct.txt", MACHINE))


def test_table_that_another_program_has_written_gives_the_same_jobs(tmp_path: Path) -> None:
    path = tmp_path / "example-sacct.txt"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(ROWS)
    assert '"' in path.read_text("utf-8")
    assert_same_jobs(read(path, MACHINE), read("catalog:example-sacct.txt", MACHINE))


@pytest.mark.parametrize("constraints", [False, True])
def test_commas_within_cells_are_reported(tmp_path: Path, constraints: bool) -> None:
    path = tmp_path / "jobs.txt"
    rows = [["Constraints", *ROWS[0]], *(["", *row] for row in ROWS[1:])] if constraints else ROWS
    path.write_text("".join(",".join(row) + "\n" for row in rows), "utf-8")
    with pytest.raises(InputError, match=r"the row has 1[67] fields, the header 1[34]; .* rows cannot be read") as caught:
        read(path, MACHINE)
    assert caught.value.line == 2 and "--delimiter" in str(caught.value.remedy)


def test_table_with_some_columns_of_sacct_remains_a_table(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("JobID,State,Submit,Elapsed,Nodes\n1,COMPLETED,2026-03-01T00:00:00,60,2\n", "utf-8")
    assert read(path, MACHINE).nodes.tolist() == [2]


def test_rows_that_no_csv_reader_accepts_are_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    lines = [";".join(row) for row in ROWS[:40]]
    lines[3] = lines[3].replace(";", ';"x\ry";', 1)
    path.write_text("\n".join(lines), "utf-8", newline="")
    workload = read(path, MACHINE)
    assert workload.excluded["cannot be read"] == 1 and "line 4: the row has 14 fields, the header 13" in workload.notes[0]
