"""Descriptions of runs: a provenance file contains the whole run and reproduces it."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from poolwise import catalog
from poolwise.cli import app as cli
from poolwise.errors import InputError
from poolwise.hashing import pretty
from poolwise.studies import load, run
from poolwise.studies.description import RecordedRun, describe, read_descriptions

SHIPPED = [name for name, _ in catalog.shipped("studies") if name != "whole-datacenter-dlrm"]  # its trace is not in the catalog


def recorded(cell, folder: Path) -> RecordedRun:
    """Return a run from its description in a folder."""
    file = folder / "provenance.json"
    file.write_bytes(pretty(describe(cell, folder), sort=False))
    return read_descriptions(file)[0]


@pytest.mark.parametrize("name", SHIPPED)
def test_each_run_of_each_catalog_study_is_reproduced(name, tmp_path):
    cells = load(name, {"seeds": {"values": [2]}}).cells
    for cell in {c.key: c for c in [cells[0], cells[len(cells) // 2], cells[-1], cells[0].baseline()]}.values():
        described = recorded(cell, tmp_path).cell()
        assert (described.key, described.machine.name) == (cell.key, cell.machine.name)
        assert described.machine.owners == cell.machine.owners, "the order of node types in a rack matters"
        assert str(Path(catalog.__file__).parent) not in (tmp_path / "provenance.json").read_text(), (
            "the description is portable"
        )


def test_files_are_relative_to_the_description(kept_folder, tmp_path, monkeypatch):
    folder = tmp_path / "study"
    shutil.copytree(kept_folder, folder, ignore=shutil.ignore_patterns("out"))
    source = "from poolwise.policies.order.priorities import SJF\n\n\nclass Mine(SJF):\n    pass\n"
    (folder / "mine.py").write_text(source)
    cell = load(folder / "study.toml", {"vary.scheduler.order": ["mine.py:Mine"]}).cells[0]
    (folder / "results").mkdir()
    run_ = recorded(cell, folder / "results")
    assert set(run_.files) == {"../jobs.csv", "../mine.py"} and str(folder) not in json.dumps(run_.run)
    monkeypatch.chdir("/")
    moved = tmp_path / "moved"
    folder.rename(moved)
    assert read_descriptions(moved / "results" / "provenance.json")[0].cell().key == cell.key
    (moved / "mine.py").write_text(source + "# another\n")
    with pytest.raises(InputError, match=r"mine\.py changed since"):
        read_descriptions(moved / "results" / "provenance.json")[0].cell()
    (moved / "mine.py").unlink()
    with pytest.raises(InputError, match="is missing"):
        read_descriptions(moved / "results" / "provenance.json")[0].cell()


def test_study_describes_each_of_its_cells(kept_folder, tmp_path):
    study = load(kept_folder / "study.toml")
    run(study, tmp_path / "out", jobs=1)
    recorded_runs = read_descriptions(tmp_path / "out" / "provenance.json")
    assert [(r.key, dict(r.parameters), r.seed) for r in recorded_runs] == [(c.key, c.parameters, c.seed) for c in study.cells]
    assert [r.cell().key for r in recorded_runs] == [c.key for c in study.cells]


def call(capsys, *given):
    arguments = [*map(str, given)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["poolwise", *arguments])
        code = cli.run(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.long
def test_recorded_run_is_repeated(tmp_path, monkeypatch, capsys):
    cli._discover()
    monkeypatch.chdir(tmp_path)
    lines = ["id,submit_ns,duration_ns,nodes", *(f"{k},{5 + k}000000000,{90 - k}000000000,{1 + k % 3}" for k in range(9))]
    Path("jobs.csv").write_text("\n".join(lines) + "\n")
    Path("out").mkdir()
    first = ("simulate", "jobs.csv", "--processors", 4, "--order", "sjf", "--backfill", "none")
    assert call(capsys, *first, "--schedule", "out/runs.csv")[0] == 0
    record = "out/runs.csv.provenance.json"
    monkeypatch.chdir("out")
    record = Path(record).name
    assert call(capsys, "simulate", "rerun", record, "--schedule", "again.csv")[0] == 0
    assert Path("again.csv").read_text() == Path("runs.csv").read_text(), "times have the origin of the trace"
    assert call(capsys, "simulate", "rerun", record, "--set", "scheduler.order=fcfs", "--schedule", "fcfs.csv")[0] == 0
    assert Path("fcfs.csv").read_text() != Path("runs.csv").read_text()
    code, _, err = call(capsys, "simulate", "rerun", record, "--order", "fm")
    assert code == 2 and "--order" in err
    code, _, err = call(capsys, "simulate", "rerun", "runs.csv")
    assert code == 2 and "give runs.csv.provenance.json instead" in err
    Path("alone.csv").write_text(Path("runs.csv").read_text())
    code, _, err = call(capsys, "simulate", "rerun", "alone.csv")
    assert code == 2 and "does not describe a run" in err and "give alone.csv.provenance.json" in err
    code, _, err = call(capsys, "simulate", "rerun", "gone.csv.provenance.json")
    assert code == 2 and "no such file" in err and "give FILE.provenance.json" in err
    Path("old.json").write_text(json.dumps({"poolwise": "0.1.0", "command": ["poolwise", "simulate"]}))
    code, _, err = call(capsys, "simulate", "rerun", "old.json")
    assert code == 2 and "run the command again" in err


def test_order_of_node_types_distinguishes_machines(kept_folder, tmp_path):
    """Placements by node order differ on them, so they must not share results."""
    folder = tmp_path / "study"
    shutil.copytree(kept_folder, folder, ignore=shutil.ignore_patterns("out"))
    text = (folder / "machine.toml").read_text() + '\n[[node]]\nname = "fat"\ncores = 4\nmemory = "32 GiB"\n'
    cells = []
    for nodes in ("{ thin = 4, fat = 1 }", "{ fat = 1, thin = 4 }"):
        (folder / "machine.toml").write_text(text.replace("{ thin = 4 }", nodes))
        cell = load(folder / "study.toml").cells[0]
        again = recorded(cell, tmp_path).cell()
        assert (again.key, again.machine.owners) == (cell.key, cell.machine.owners)
        cells.append(cell)
    assert cells[0].machine.owners != cells[1].machine.owners and cells[0].key != cells[1].key
