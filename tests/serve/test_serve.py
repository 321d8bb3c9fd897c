"""The server requires the token, serves nothing outside its folder, and runs requested commands."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest
from aiohttp import ClientResponse, CookieJar, FormData
from aiohttp.test_utils import TestClient, TestServer

from poolwise.errors import InputError
from poolwise.serve.app import make_app
from poolwise.serve.folder import StudyFolder

TOKEN = "a-token"
STUDY = """
version = 1
title = "Small"
machine = "catalog:cerit-racks"
[workload]
trace = "catalog:cerit-2013.swf.gz"
first = 9000
jobs = 300
[measure]
warm_up = 20
[vary]
"scheduler.order" = ["fcfs", "sjf"]
"machine.pool.memory.memory" = ["128 GiB", "384 GiB"]
"""
Visit = Callable[[TestClient], Awaitable[None]]


def served(folder: Path, visit: Visit, token: str | None = TOKEN) -> None:
    async def go() -> None:
        server = TestServer(make_app(folder, TOKEN))
        async with TestClient(server, cookie_jar=CookieJar(unsafe=True)) as client:
            if token is not None:
                await client.get("/", params={"token": token})
            await visit(client)

    asyncio.run(go())


@pytest.fixture
def studies(tmp_path: Path) -> Path:
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "small.toml").write_text(STUDY)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "report.html").write_text("secret")
    return tmp_path / "served"


@pytest.mark.parametrize("token", [None, "", "another", "a-toke", "a-token2"])
def test_requests_without_the_token_are_rejected(studies: Path, token: str | None) -> None:
    async def visit(client: TestClient) -> None:
        for path in ("/", "/serve.js", "/report/x", "/command/1"):
            assert (await client.get(path)).status == 401
        own = {"Origin": str(client.make_url("/")).rstrip("/")}
        assert (await client.post("/ask", headers=own)).status == 401

    served(studies, visit, token)


def test_other_hosts_and_origins_are_rejected(studies: Path) -> None:
    async def visit(client: TestClient) -> None:
        assert (await client.get("/")).status == 200
        assert (await client.get("/", headers={"Host": "evil.example:80"})).status == 403
        for headers in ({}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
            assert (await client.post("/ask", headers=headers)).status == 403

    served(studies, visit)


def test_every_response_forbids_foreign_content(studies: Path) -> None:
    async def visit(client: TestClient) -> None:
        for path in ("/", "/serve.css", "/nowhere", "/report/nowhere"):
            headers = (await client.get(path)).headers
            assert headers["Content-Security-Policy"].startswith("default-src 'none'")
            assert (
                "http" not in headers["Content-Security-Policy"]
                and "frame-ancestors 'none'" in headers["Content-Security-Policy"]
            )
            assert headers["X-Content-Type-Options"] == "nosniff" and "Access-Control-Allow-Origin" not in headers

    served(studies, visit)


def test_names_with_spaces_are_quoted_and_equal_titles_name_their_files(studies: Path) -> None:
    folder = studies.rename(studies.parent / "my results")
    (folder / "größe 2.toml").write_text(STUDY)

    async def visit(client: TestClient) -> None:
        page = await (await client.get("/")).text()
        assert "--out &#39;my results/NAME&#39;" in page
        assert "Study: Small (small.toml)" in page and "Study: Small (größe 2.toml)" in page

    served(folder, visit)


@pytest.mark.parametrize("name", ["../secret", "..", ".", "/etc", "x/../../secret", "link", "\0"])
def test_paths_outside_the_folder_are_rejected(studies: Path, name: str) -> None:
    (studies / "link").symlink_to(studies.parent / "secret")
    with pytest.raises(InputError, match="not in the served folder"):
        StudyFolder(studies).inside(name)

    async def visit(client: TestClient) -> None:
        answer = await client.get(f"/report/{name.replace('/', '%2f').replace(chr(0), '%00')}")
        assert "secret" not in await answer.text()
        assert "unsafe-inline" not in answer.headers["Content-Security-Policy"], "not a report"

    served(studies, visit)


async def request(client: TestClient, question: str, **fields: str) -> dict:
    own = {"Origin": str(client.make_url("/")).rstrip("/")}
    begun = await client.post(question, data=FormData(fields), headers=own)
    assert begun.status == 200, await begun.text()
    number = (await begun.json())["command"]
    while (state := await (await client.get(f"/command/{number}")).json())["code"] is None:
        await asyncio.sleep(0.1)
    return state


@pytest.mark.long
def test_invalid_requests_are_answered_with_a_remedy(studies: Path) -> None:
    wrong = {
        "order": {"study": "small.toml", "scheduler.order": "nope"},
        "machine": {"study": "small.toml", "machine": "../x"},
        "size": {"study": "small.toml", "size_path": "machine.pool.memory.memory", "size": "-1"},
        "path": {"study": "small.toml", "size_path": "a=b c", "size": "1"},
        "study": {"study": "../secret"},
        "nothing": {},
    }

    async def visit(client: TestClient) -> None:
        own = {"Origin": str(client.make_url("/")).rstrip("/")}
        for name, fields in wrong.items():
            answer = await client.post("/ask", data=FormData(fields), headers=own)
            assert answer.status == 400 and "remedy" in await answer.text(), name
        answer = await client.post("/explain", data={"job": "--help", "run": "x:y"}, headers=own)
        assert answer.status == 400
        failed = await request(client, "/explain", run="nowhere:abc", job="1")
        assert failed["code"] == 2 and failed["answer"] is None and failed["messages"]

    served(studies, visit)


async def post(client: TestClient, address: str, **fields: str) -> ClientResponse:
    own = {"Origin": str(client.make_url("/")).rstrip("/")}
    return await client.post(address, data=FormData(fields), headers=own)


@pytest.mark.long
def test_requested_runs_are_kept_named_and_removed(studies: Path) -> None:
    question = {"study": "small.toml", "size_path": "machine.pool.memory.memory", "size": "200"}

    async def visit(client: TestClient) -> None:
        reply = await request(client, "/ask", **question)
        assert reply["code"] == 0 and reply["done"] == reply["total"] == 3, reply
        again = await request(client, "/ask", **question)
        assert again["answer"] == reply["answer"] and again["total"] == 0, "the kept run is the answer"
        (saved,) = await (await client.get("/runs")).json()
        folder = saved["folder"]
        assert folder == reply["answer"]["results"] and saved["name"] == "200 GiB" and saved["report"]
        assert saved["study"] == "small" and datetime.fromisoformat(saved["at"]).tzinfo is not None
        assert [run["settings"] for run in saved["runs"]] == ["FCFS, 200 GiB", "SJF, 200 GiB"]
        frame = pl.read_csv(studies / folder / "results.csv")
        assert [run["mean_wait_s"] for run in saved["runs"]] == pytest.approx(frame["mean_wait_s"].to_list())
        assert (await post(client, "/keep", results=folder, name="small pool", tags="draft")).status == 200
        (saved,) = await (await client.get("/runs")).json()
        assert (saved["name"], saved["asked"]["tags"]) == ("small pool", "draft")
        for outside in ("../secret", "small.asked", "small.asked/none"):
            assert (await post(client, "/remove", results=outside)).status == 400
        assert (await post(client, "/remove", results=folder)).status == 200
        assert not (studies / folder).exists() and await (await client.get("/runs")).json() == []

    served(studies, visit)


@pytest.mark.long
def test_numbers_of_a_study_are_asked_and_a_repeated_question_simulates_nothing(studies: Path) -> None:
    text = STUDY.replace('"machine.pool.memory.memory" = ["128 GiB", "384 GiB"]', '"machine.rack.0.count" = [4, 5]')
    (studies / "small.toml").write_text(text)
    question = {"study": "small.toml", "scheduler.order": "sjf", "number:machine.rack.0.count": "6"}

    async def visit(client: TestClient) -> None:
        page = await (await client.get("/")).text()
        assert 'name="number:machine.rack.0.count"' in page and 'placeholder="4, 5"' in page
        reply = await request(client, "/ask", **question)
        assert reply["code"] == 0 and reply["done"] == reply["total"] == 2, "the run and its baseline"
        again = await request(client, "/ask", **question)
        assert again["answer"] == reply["answer"] and again["total"] == 0
        (saved,) = await (await client.get("/runs")).json()
        assert saved["name"] == "SJF, count 6" and saved["runs"][0]["settings"] == "SJF, count 6"
        for value in ("six", "-1", "1e9", "'catalog:x'"):
            answer = await post(client, "/ask", **{**question, "number:machine.rack.0.count": value})
            assert answer.status == 400 and "is not a number" in await answer.text(), value

    served(studies, visit)


@pytest.mark.long
def test_a_changed_study_or_policy_runs_again(studies: Path) -> None:
    policy = studies / "own.py"
    order = (
        "from poolwise.interfaces import QueuePolicy\n\n\n"
        "class Own(QueuePolicy):\n    kind = 'static'\n\n"
        "    def priority(self, queue, snapshot):\n        return {}queue.table.requested[queue.jobs].astype(float)\n"
    )
    text = STUDY.replace('["fcfs", "sjf"]', '["own.py:Own"]')
    (studies / "small.toml").write_text(text)

    async def visit(client: TestClient) -> None:
        folders = []
        for change in ("", "-"):
            policy.write_text(order.format(change))
            reply = await request(client, "/ask", study="small.toml")
            assert reply["code"] == 0, reply["messages"]
            folders.append(reply["answer"]["results"])
        assert folders[0] != folders[1], "the code of the user is read again for each question"
        (studies / "small.toml").write_text(text.replace("jobs = 300", "jobs = 310"))
        assert (await request(client, "/ask", study="small.toml"))["answer"]["results"] not in folders

    served(studies, visit)
