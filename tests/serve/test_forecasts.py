"""Forecasts of saved states, requested in a browser."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from aiohttp import FormData
from aiohttp.test_utils import TestClient

from poolwise.files.state import write_state
from poolwise.model import InitialRun, JobTable, Machine, MachineState, Placement
from poolwise.quantities import HOUR
from poolwise.serve.folder import StudyFolder
from tests.serve.test_serve import served


def a_state(path: Path) -> None:
    """Save a state: one of four nodes is free, and a job whose name is markup waits for two."""
    table = JobTable(
        np.array([1, 2]), np.array([0, HOUR]), np.array([10 * HOUR, HOUR]), np.ones(2, dtype=np.int64),
        {"nodes": np.array([3, 2])}, {}, name=["first", "<b>second"], epoch=1_800_000_000 * 10**9,
    )  # fmt: skip
    run = InitialRun(0, 0, Placement.of([(0, 0, 0, 3)]))
    write_state(MachineState(Machine.flat(4), table, 5 * HOUR, [run], np.array([1]), "a test", ""), path)


@pytest.mark.long
def test_state_is_forecast_and_its_page_is_served(tmp_path: Path) -> None:
    a_state(tmp_path / "now")
    (tmp_path / "else").mkdir()
    assert StudyFolder(tmp_path).states() == ["now"]

    async def visit(client: TestClient) -> None:
        assert "When will jobs start?" in await (await client.get("/")).text()
        own = {"Origin": str(client.make_url("/")).rstrip("/")}
        begun = await (
            await client.post("/forecast", data=FormData({"state": "now", "job": "2", "by": "6h"}), headers=own)
        ).json()
        while (state := await (await client.get(f"/command/{begun['command']}")).json())["code"] is None:
            await asyncio.sleep(0.1)
        assert state["code"] == 0, state
        (job,) = state["answer"]["jobs"]
        assert job["job"] == "job <b>second" and job["chance_by"] == 1.0 and state["answer"]["changes"]
        page = await (await client.get(begun["page"])).text()
        assert "Start time of job &lt;b&gt;second" in page and "<b>second" not in page.split("application/json")[0]
        assert (await client.post("/forecast", data=FormData({"state": "../x"}), headers=own)).status == 400

    served(tmp_path, visit)
