"""Code fingerprint of a run: covers everything it executes and nothing that it cannot reach."""

import ast
import shutil
import sys
from pathlib import Path

import pytest

from poolwise import code_fingerprint
from poolwise.code_fingerprint import PACKAGE, reached, sources
from poolwise.studies import load
from poolwise.studies.cell_simulation import simulate_cell

RUN = "poolwise.studies.cell_simulation"


@pytest.fixture(scope="module")
def copied(tmp_path_factory) -> Path:
    """A modifiable copy of the package's Python files."""
    folder = tmp_path_factory.mktemp("copy") / "poolwise"
    for file in PACKAGE.rglob("*.py"):
        (folder / file.relative_to(PACKAGE)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / file.relative_to(PACKAGE))
    return folder


UNREACHABLE = [
    "report/sentences.py",
    "cli/run.py",
    "serve/__init__.py",
    "plans/search.py",
    "runner/task_runner.py",
    "studies/results.py",
]
REACHABLE = [
    "policies/order/priorities.py",
    "policies/placement/nvme/__init__.py",
    "kernels/list_scheduling/easy.py",
    "kernels/numba_internals.py",
    "optimize/min_cost_flow/__init__.py",
    "traces/generators/lublin.py",
    "performance/remote_memory.py",
    "loop.py",
    "studies/cell_simulation.py",
]


@pytest.mark.long
def test_only_reachable_files_change_the_fingerprint(copied):
    before = sources(RUN, package=copied)
    assert before == sources(RUN)
    changed = []
    for name in [*UNREACHABLE, *REACHABLE]:
        text = (copied / name).read_text()
        (copied / name).write_text(f"{text}# changed\n")
        sources.cache_clear()
        changed += [name] if sources(RUN, package=copied) != before else []
        (copied / name).write_text(text)
    assert changed == REACHABLE


def test_every_import_is_followed():
    """Compare with all imported files as found by Python's own parser."""
    followed, left = set(), [PACKAGE / "studies" / "cell_simulation.py"]
    while left:
        file = left.pop()
        if file in followed:
            continue
        followed.add(file)
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "poolwise":
                assert node.level == 0
                parts = [code_fingerprint._file(f"{node.module}.{name.name}", PACKAGE) for name in node.names]
                left += [part or code_fingerprint._file(str(node.module), PACKAGE) for part in parts]
            elif isinstance(node, ast.Import):
                names = [name.name for name in node.names if name.name.startswith("poolwise.")]
                left += [code_fingerprint._file(name, PACKAGE) for name in names]
    assert {file.relative_to(PACKAGE).as_posix() for file in followed} <= reached(RUN)


@pytest.mark.parametrize("order", ["fm", "wfp3"])
@pytest.mark.parametrize("more", [{}, {"scheduler.kind": "list", "scheduler.backfill": "conservative"}])
def test_every_executed_file_is_reached(folder, order, more):
    executed = set()
    (cell, *_) = load(folder / "study.toml", {"scheduler.order": order, **more}).cells
    sys.setprofile(lambda frame, *_: executed.add(frame.f_code.co_filename))
    try:
        simulate_cell(cell)
    finally:
        sys.setprofile(None)
    files = {Path(name).relative_to(PACKAGE).as_posix() for name in executed if name.startswith(f"{PACKAGE}/")}
    empty = {name for name in files if len(ast.parse((PACKAGE / name).read_text()).body) <= 1}  # packages with a docstring only
    assert len(files) > 20 and files - empty <= reached(RUN) | {"code_fingerprint.py"}
