"""Answer times of the server on the imported files of a Slurm site, and what a worker loads before the first question."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient

from tests.helpers import imported_site
from tests.helpers.imported_site import BF_INTERVAL
from tests.helpers.machine_speed import measured_slowness
from tests.serve.test_serve import request, served

pytestmark = pytest.mark.long

REPEATED_S, NEW_S = 1.0, 2.0
"""Limits (s) on the reference computer; measured: 0.2 and 0.7 s."""
FIRST_QUESTION = """
import json, os, sys
from pathlib import Path
from poolwise.cli.app import main, whole_command
from poolwise.serve import worker

stdin, _ = os.pipe()
sys.stdin = os.fdopen(stdin)
study = Path(sys.argv[1])
worker._warm_up(study.parent, whole_command)
before = set(sys.modules)
code, answer = worker._ask(main, str(study))
print(json.dumps({"code": code, "loaded": sorted(set(sys.modules) - before)}))
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return imported_site.write(tmp_path)


async def seconds(client: TestClient, bf_interval: int) -> tuple[float, int]:
    """Ask for an interval; return the time to the answer as on the reference computer, and the number of simulated runs."""
    begun = time.perf_counter()
    reply = await request(client, "/ask", **{"study": "study.toml", f"number:{BF_INTERVAL}": str(bf_interval)})
    taken = time.perf_counter() - begun
    assert reply["code"] == 0, reply["messages"]
    return taken / max(1.0, measured_slowness()), reply["total"]


def test_repeated_and_new_questions_are_answered_at_once(site: Path) -> None:
    async def visit(client: TestClient) -> None:
        await seconds(client, 600)  # a worker may still load
        new = [await seconds(client, bf_interval) for bf_interval in (30, 90, 120)]
        assert min(new)[0] < NEW_S and all(runs == 3 for _, runs in new), new
        repeated = [await seconds(client, bf_interval) for bf_interval in (30, 90, 120)]
        assert min(repeated)[0] < REPEATED_S and all(runs == 0 for _, runs in repeated), repeated

    served(site, visit)


def test_the_first_question_loads_no_modules(site: Path) -> None:
    study = str(site / "study.toml")
    done = subprocess.run([sys.executable, "-c", FIRST_QUESTION, study], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    assert answer["code"] == 0, done.stderr
    assert not [name for name in answer["loaded"] if name.startswith(("poolwise", "scipy", "numba", "rich.progress"))]
