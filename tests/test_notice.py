"""Every shipped data file has its terms, and nothing of one machine stands in the tree."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
OWN = {".toml", ".py"}  # written for this project


def shipped() -> list[str]:
    catalog = ROOT / "src" / "poolwise" / "catalog"
    files = [p for p in catalog.rglob("*") if p.is_file() and p.suffix not in OWN and "__pycache__" not in p.parts]
    return [str(p.relative_to(ROOT)) for p in files]


def test_each_shipped_data_file_has_its_terms() -> None:
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    assert shipped()
    named = set(notice.split())
    missing = [path for path in shipped() if not {path, f"{Path(path).parent}/"} & named]
    assert not missing


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
    assert names <= pinned


def test_no_tracked_file_names_this_machine() -> None:
    done = subprocess.run(["git", "grep", "-nIl", str(ROOT) + "/"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == ""
