import csv

from poolwise import catalog
from poolwise.reproductions.nvme_cells import DEFAULT, Cells, Load
from poolwise.reproductions.nvme_composition import COLUMNS, NvmeComposition, Plan, Results, _rows
from poolwise.studies.comparison import read_claims


def claims():
    return read_claims(catalog.find("reproductions", "nvme-composition.csv"))


def test_every_published_value_is_a_claim_under_both_physics(shared):
    stated = {claim.key: claim.published for claim in claims()}
    tables = {"high_bandwidth": "Table III", "high_capacity": "Table IV", "high_compute": "Table V"}
    with (shared / "published" / "nvme_tables.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 60
    for row in rows:
        for mode in ("default", "parity"):
            where = f"{row['scenario']}, load {row['target_load']}, {row['infrastructure']}, {row['policy']}, {mode}"
            for name in COLUMNS:
                assert stated[tables[row["scenario"]], where, name] == float(row[name])


def test_claims_and_measurements_name_the_same_rows():
    assert {key for key, _ in _rows(Results(range(1), {}))} == {claim.key for claim in claims()}


def test_a_full_run_measures_every_row_and_a_quick_one_some():
    """Looked up in the plans, without running them: each row's cases are among the planned ones."""
    asked = set()

    class Asked(dict):
        def __contains__(self, case):
            asked.add(case)
            return False

    list(_rows(Results(range(1), Asked())))
    assert asked <= set(Plan(1, 1).cases())
    assert not asked <= set(Plan(1, 1, (0.7, 0.8), (1.0,), (2,)).cases())


def test_results_are_kept_and_taken_up_again(tmp_path):
    from poolwise.reproductions.nvme_cells import Case

    case = Case(Load("high_compute", 0.5, 0), "first_fit")
    first = Cells(tmp_path, 1).measure([case])
    files = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(files) == 2  # the calibration and the case
    again = Cells(tmp_path, 1).measure([case])
    assert first == again
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == files
    found = first[case]
    assert found["reached"]
    assert found["rejected"] == 0
    assert found["composition_size"] == 1.0
    assert NvmeComposition().seeds == 20
    assert case.load.physics == DEFAULT
