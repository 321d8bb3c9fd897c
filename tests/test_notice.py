"""Every data file has its terms, and nothing of one machine stands in the tree."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
OWN = {".toml", ".py", ".md"}  # written for this project


def data_files() -> list[str]:
    folders = (ROOT / "src" / "poolwise" / "catalog", ROOT / "tests" / "data")
    files = [p for folder in folders for p in folder.rglob("*") if p.is_file() and p.suffix not in OWN]
    return [str(p.relative_to(ROOT)) for p in files if "__pycache__" not in p.parts]


def test_each_data_file_has_its_terms() -> None:
    named = set((ROOT / "NOTICE").read_text(encoding="utf-8").split())
    files = data_files()
    assert {Path(path).parts[0] for path in files} == {"src", "tests"}
    assert [path for path in files if not {path, f"{Path(path).parent}/"} & named] == []


def test_what_the_notice_names_is_there() -> None:
    lines = (ROOT / "NOTICE").read_text(encoding="utf-8").splitlines()
    named = [line for line in lines if re.fullmatch(r"(src|tests)/\S+", line)]
    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_data_of_the_tests_stays_small() -> None:
    assert sum(p.stat().st_size for p in (ROOT / "tests" / "data").rglob("*") if p.is_file()) < 3 * 2**20


def test_constraints_name_versions_and_no_host() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert lines
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines)


def test_each_dependency_is_pinned() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["dev"]]
    names = {re.split(r"[<>=~! \[]", name)[0].lower().replace("_", "-") for name in wanted}
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().splitlines()}
    assert names - {"poolwise"} <= pinned


def test_no_tracked_file_names_this_machine() -> None:
    done = subprocess.run(["git", "grep", "-nIl", str(ROOT) + "/"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == ""
