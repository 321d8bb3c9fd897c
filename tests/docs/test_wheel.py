"""The wheel, installed into an empty environment without extras, runs the main job."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("wheel")]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment that holds the wheel and its dependencies only."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)], cwd=ROOT, check=True, capture_output=True
    )
    assert sorted(file.suffix for file in folder.iterdir()) == [".gz", ".whl"]
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    wheel = next(folder.glob("*.whl"))
    pip = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(folder / "venv" / "bin" / "python")]
    done = subprocess.run(
        [*pip, "--constraint", str(ROOT / "constraints.txt"), str(wheel)], capture_output=True, text=True, check=False
    )
    if done.returncode and "error sending request" in done.stderr:
        pytest.skip("no package index is reachable; connect to PyPI, or set UV_DEFAULT_INDEX to a mirror")
    assert done.returncode == 0, done.stderr
    return folder / "venv" / "bin"


def test_main_job_runs_from_the_wheel(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    command = [str(installed / "poolwise"), "run", "cerit-pools", "--out", "results", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    assert (tmp_path / "results" / "report.html").stat().st_size > 100_000


def test_wheel_needs_no_development_packages(installed: Path) -> None:
    site = next((installed.parent / "lib").glob("python*/site-packages"))
    names = {entry.name.partition("-")[0].lower() for entry in site.glob("*.dist-info")}
    assert names.isdisjoint({"pytest", "mypy", "ruff", "hypothesis", "mkdocs", "distributed", "aiohttp", "optuna"})
