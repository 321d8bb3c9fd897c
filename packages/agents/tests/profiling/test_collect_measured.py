"""Tests that the shipped measured profiles are reproduced, byte for byte, from the shipped measurements."""

import json
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from benchmarks import collect_measured
from poolwise import catalog

SHIPPED = ("measurements/measured.csv", "memory_profiles/measured.csv")


def test_shipped_files_are_reproduced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head, *lines = (catalog.FOLDER / SHIPPED[0]).read_text().splitlines()
    conditions = json.loads((catalog.FOLDER / "measurements" / "measured.json").read_text())
    rows = defaultdict(list)
    for line in lines:
        rows[line.partition(",")[0]].append(line)
    folder, made = tmp_path / "measured", tmp_path / "catalog"
    for path in (folder, made / "measurements", made / "memory_profiles"):
        path.mkdir(parents=True)
    for name, some in rows.items():
        file = folder / f"{name}.csv"
        file.write_text("\n".join([head, *some]) + "\n")
        about = conditions[name]
        command = [word.replace("FOLDER", str(folder)) for word in about.pop("command")]
        content = {"command": command, "conditions": about}
        Path(f"{file}.provenance.json").write_text(json.dumps(content))
    collect_measured.main(folder, made)
    for name in SHIPPED:
        assert (made / name).read_text() == (catalog.FOLDER / name).read_text()
    shipped = json.loads((catalog.FOLDER / "measurements" / "measured.json").read_text())
    assert json.loads((made / "measurements" / "measured.json").read_text()) == shipped
    page = (Path(__file__).parents[4] / "docs" / "explanation" / "measured-profiles.md").read_text()
    for line in capsys.readouterr().out.splitlines():
        assert line.partition(" | ")[2].removesuffix(" |") in page


def test_recorded_command_contains_no_local_paths(tmp_path: Path) -> None:
    program = str(Path(collect_measured.__file__).parent / "programs" / "kmeans.py")
    words = ["poolwise", "--out", f"{tmp_path}/k.csv", "--", sys.executable, program, f"{tmp_path}/data", "3"]
    python = Path(sys.executable).name
    assert collect_measured.without_paths(words, tmp_path) == [
        "poolwise", "--out", "FOLDER/k.csv", "--", python, "benchmarks/programs/kmeans.py", "FOLDER/data", "3",
    ]  # fmt: skip
