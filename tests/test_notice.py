"""Tests that NOTICE states the terms of every data file, and that no tracked file contains paths of the development machine."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
OWN = {".toml", ".py", ".md"}  # file types that were written for this project


def data_files() -> list[str]:
    folders = (ROOT / "src" / "poolwise" / "catalog", *ROOT.glob("packages/*/src/*/catalog"), ROOT / "tests" / "data")
    files = [p for folder in folders for p in folder.rglob("*") if p.is_file() and p.suffix not in OWN]
    return [str(p.relative_to(ROOT)) for p in files if "__pycache__" not in p.parts]


def test_notice_lists_every_data_file() -> None:
    named = set((ROOT / "NOTICE").read_text(encoding="utf-8").split())
    files = data_files()
    assert {Path(path).parts[0] for path in files} == {"src", "packages", "tests"}
    assert [path for path in files if not {path, f"{Path(path).parent}/"} & named] == []


def test_paths_in_notice_exist() -> None:
    lines = (ROOT / "NOTICE").read_text(encoding="utf-8").splitlines()
    named = [line for line in lines if re.fullmatch(r"(src|packages|tests)/\S+", line)]
    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_test_data_is_small() -> None:
    assert sum(p.stat().st_size for p in (ROOT / "tests" / "data").rglob("*") if p.is_file()) < 3 * 2**20


def test_constraints_contain_versions_and_no_host() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert lines
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines)


def test_every_dependency_is_pinned() -> None:
    import tomllib

    files = (ROOT / "pyproject.toml", *ROOT.glob("packages/*/pyproject.toml"))
    projects = [tomllib.loads(file.read_text(encoding="utf-8"))["project"] for file in files]
    extras = {
        name: words for project in projects for name, words in project["optional-dependencies"].items() if name != "measure"
    }
    wanted = [name for project in projects for name in project["dependencies"]] + [
        name for words in extras.values() for name in words
    ]
    names = {re.split(r"[<>=~! \[]", name)[0].lower().replace("_", "-") for name in wanted}
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().splitlines()}
    assert names - {"poolwise", "poolwise-agents"} <= pinned


def test_no_tracked_file_contains_a_local_path() -> None:
    done = subprocess.run(["git", "grep", "-nIl", str(ROOT) + "/"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == ""
