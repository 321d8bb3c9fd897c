"""Kills a node agent at each of its steps, starts another one, and checks that nothing is left behind.

Each life of the agent is a process that exits without clean-up, as after `kill -9`. Steps are the moments before and after each
change outside the process; for written files also the moment before the rename.
"""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from poolwise_agents.node_agent import work_queue
from poolwise_agents.node_agent.connector import AttachError
from tests.helpers.node_agent import (
    DRIVER,
    FILE,
    Content,
    Hardware,
    MemoryCluster,
    claim_for,
    make_agent,
    publish_all,
    until,
    wait_until_idle,
)

BROKEN = """
[template.broken]
attach = ["/bin/attach", "{device}", "{claim.uid}"]
verify = ["/bin/broken", "{device}"]
detach = ["/bin/detach", "{device}"]
time_limit = "10 ms"

[[pool]]
name = "broken"
node = "gpu-a"
reach = "all"
device = [{ name = "gpu-9", template = "broken" }]
"""
TEXT = FILE + BROKEN
KILLED = 9


class SavedCluster(MemoryCluster):
    """A cluster that outlives the process: it saves each change to a file."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file
        if file.exists():
            self.claims, self.stored = json.loads(file.read_text())

    def put(self, content: Content) -> str:
        uid = super().put(content)
        self._save()
        return uid

    def delete(self, name: str) -> None:
        super().delete(name)
        self._save()

    async def apply_slice(self, content: Content) -> None:
        await super().apply_slice(content)
        self._save()

    def _save(self) -> None:
        self.file.write_text(json.dumps([self.claims, self.stored]))


class Fuse:
    """Kills the process at a given step."""

    def __init__(self, at: int) -> None:
        self.at, self.steps = at, 0

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.at:
            os._exit(KILLED)

    def around(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function with a step before and after each call."""

        def stepping(*args: Any) -> Any:
            self.step()
            result = work(*args)
            self.step()
            return result

        async def awaited(*args: Any) -> Any:
            self.step()
            result = await work(*args)
            self.step()
            return result

        return awaited if asyncio.iscoroutinefunction(work) else stepping

    def wrap(self, name: str, part: Any) -> Any:
        """Add steps to the methods that write."""
        writes = {
            "records": ["save", "remove"],
            "cdi": ["write", "remove"],
            "cluster": ["report", "apply_slice", "delete_slice"],
        }
        for method in writes[name]:
            setattr(part, method, self.around(getattr(part, method)))
        return part


async def live(folder: Path, fuse: Fuse, gone: bool = False) -> None:
    """Run one life with a scheduler, a kubelet and two claims, one of which cannot be attached; or delete both claims."""
    cluster, hardware = SavedCluster(folder / "cluster.json"), Hardware(folder / "hardware")
    hardware.broken = {"/bin/broken"}
    if not cluster.claims:
        await publish_all(cluster, folder, TEXT)
    agent = make_agent(folder, cluster, fuse.around(hardware.run), TEXT, wrap=fuse.wrap)
    agent.resume()
    train, doomed = claim_for("train", "gpu-0", "gpu-1"), claim_for("doomed", "gpu-9", pool="broken")
    uid = train["metadata"]["uid"]
    for claim in (train, doomed):
        cluster.put(cluster.claims.get(f"default/{claim['metadata']['name']}", claim))
    if gone:
        for name in ("train", "doomed"):
            cluster.delete(name)
        cluster.sync()
        await agent.unprepare(uid)  # a kubelet repeats this until it succeeds, if it had prepared the claim
    else:
        cluster.sync()
        attached, failed = f"{DRIVER}/attached", f"{DRIVER}/attach-failed"
        await until(lambda: cluster.conditions("train") == {"gpu-0": {attached: ""}, "gpu-1": {attached: ""}})
        await until(lambda: [*cluster.conditions("doomed").get("gpu-9", {})] == [failed])
        await wait_until_idle(agent)
        for _ in range(2):
            await agent.prepare("default", "train", uid)
        assert hardware.attached == {"gpu-0": uid, "gpu-1": uid}, hardware.attached
        assert [file.name for file in (folder / "cdi").glob("*.json")] == [f"{DRIVER}-claim-{uid}.json"]
        try:
            await agent.prepare("default", "doomed", doomed["metadata"]["uid"])
        except AttachError as error:
            assert "gpu-9" in str(error)
        for _ in range(2):
            await agent.unprepare(uid)
        for name in ("train", "doomed"):
            cluster.delete(name)
    await wait_until_idle(agent)
    assert hardware.attached == {}, hardware.attached
    left = [*agent.connector.records], [*(folder / "cdi").iterdir()]
    assert left == ([], []), left


def run_life(folder: Path, at: int, gone: bool = False) -> int:
    """Run a life in a child process that dies at a step (0: none) and return its exit status."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    fuse = Fuse(at)
    os.fsync = lambda handle: fuse.step()  # type: ignore[assignment]  # the machine does not crash, so syncing is unnecessary
    try:
        asyncio.run(live(folder, fuse, gone))
    except BaseException as error:
        print(f"step {at}, gone {gone}: {error!r}", flush=True)
        os._exit(1)
    os._exit(0)


def left_over(folder: Path) -> Iterator[str]:
    """Yield what is attached or injected into containers without a record."""
    records = [json.loads(file.read_text()) for file in (folder / "state").glob("[!.]*.json")]
    recorded = {(record["uid"], device["device"]) for record in records for device in record["devices"]}
    for file in (folder / "hardware").iterdir():
        if (file.read_text(), file.name) not in recorded:
            yield f"{file.name} is attached"
    for file in (folder / "cdi").glob("[!.]*.json"):
        if not any(record["uid"] in file.name for record in records):
            yield f"{file.name} exists"


def main(folder: Path, whole: bool) -> int:
    """Kill the agent at every step, in some lives twice; returns the number of kills, or 0 after a failure.

    After each kill the claims alternate between being kept and being deleted; with `whole`, both cases run.
    """
    work_queue.INITIAL_DELAY = work_queue.MAX_DELAY = 0.01  # type: ignore[misc]
    at, ends = 1, 0
    while True:
        life = folder / f"{at}"
        life.mkdir()
        status = run_life(life, at)
        if status == 0:
            return ends
        ends += 1
        if status != KILLED or (problems := [*left_over(life)]):
            print(f"step {at}: status {status}, {problems if status == KILLED else ''}")
            return 0
        other = folder / f"{at}-gone"
        shutil.copytree(life, other)
        again = run_life(life, at // 2) if at % 3 == 0 else KILLED  # it is killed again during recovery
        ends += again == KILLED and at % 3 == 0
        lives = ((life, False), (other, True)) if whole else ((other, True),) if at % 2 else ((life, False),)
        if again not in (0, KILLED) or any(run_life(where, 0, gone) for where, gone in lives):
            print(f"step {at}: not recovered")
            return 0
        at += 1


if __name__ == "__main__":
    ends = main(Path(sys.argv[1]), whole="whole" in sys.argv)
    print(f"{ends} ends")
    sys.exit(not ends)
