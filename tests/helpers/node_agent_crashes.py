"""Ends a node agent at each of its steps, begins another one, and looks what is left.

Each life of the agent is a process of its own, which ends without any clean-up as after `kill -9`. Steps are all that changes
anything outside of the process, with the moments before and after; a file that is written has one before it is renamed as well.
"""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from poolwise.live.node_agent import work_queue
from poolwise.live.node_agent.connector import AttachError
from tests.helpers.node_agent import (
    DRIVER,
    FILE,
    Content,
    Hardware,
    MemoryCluster,
    claim_for,
    make_agent,
    publish_all,
    quiet,
    until,
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


class KeptCluster(MemoryCluster):
    """A cluster that outlives the process: each change is kept in a file."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file
        if file.exists():
            self.claims, self.stored = json.loads(file.read_text())

    def put(self, content: Content) -> str:
        uid = super().put(content)
        self._keep()
        return uid

    def delete(self, name: str) -> None:
        super().delete(name)
        self._keep()

    async def apply_slice(self, content: Content) -> None:
        await super().apply_slice(content)
        self._keep()

    def _keep(self) -> None:
        self.file.write_text(json.dumps([self.claims, self.stored]))


class Fuse:
    """Ends the process at a step."""

    def __init__(self, at: int) -> None:
        self.at, self.steps = at, 0

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.at:
            os._exit(KILLED)

    def around(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """A step before a function and one after it."""

        def stepping(*given: Any) -> Any:
            self.step()
            found = work(*given)
            self.step()
            return found

        async def awaited(*given: Any) -> Any:
            self.step()
            found = await work(*given)
            self.step()
            return found

        return awaited if asyncio.iscoroutinefunction(work) else stepping

    def wrap(self, name: str, part: Any) -> Any:
        """Put steps around what writes."""
        writes = {
            "records": ["put", "remove"],
            "cdi": ["write", "remove"],
            "cluster": ["report", "apply_slice", "delete_slice"],
        }
        for method in writes[name]:
            setattr(part, method, self.around(getattr(part, method)))
        return part


async def live(folder: Path, fuse: Fuse, gone: bool = False) -> None:
    """A life: a scheduler and a kubelet with two claims, of which one cannot be attached; or nobody wants them any more."""
    cluster, hardware = KeptCluster(folder / "cluster.json"), Hardware(folder / "hardware")
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
        await agent.unprepare(uid)  # a kubelet asks for it until it succeeds, if it ever asked for the opposite
    else:
        cluster.sync()
        attached, failed = f"{DRIVER}/attached", f"{DRIVER}/attach-failed"
        await until(lambda: cluster.conditions("train") == {"gpu-0": {attached: ""}, "gpu-1": {attached: ""}})
        await until(lambda: [*cluster.conditions("doomed").get("gpu-9", {})] == [failed])
        await quiet(agent)
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
    await quiet(agent)
    assert hardware.attached == {}, hardware.attached
    left = [*agent.connector.records], [*(folder / "cdi").iterdir()]
    assert left == ([], []), left


def begin(folder: Path, at: int, gone: bool = False) -> int:
    """Live in a process of its own that ends at a step (0: none); its exit status."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    fuse = Fuse(at)
    os.fsync = lambda handle: fuse.step()  # type: ignore[assignment]  # the machine stays up: nothing need reach the disk
    try:
        asyncio.run(live(folder, fuse, gone))
    except BaseException as error:
        print(f"step {at}, gone {gone}: {error!r}", flush=True)
        os._exit(1)
    os._exit(0)


def left_over(folder: Path) -> Iterator[str]:
    """What is attached or given to containers without being on record."""
    records = [json.loads(file.read_text()) for file in (folder / "state").glob("[!.]*.json")]
    recorded = {(record["uid"], device["device"]) for record in records for device in record["devices"]}
    for file in (folder / "hardware").iterdir():
        if (file.read_text(), file.name) not in recorded:
            yield f"{file.name} is attached"
    for file in (folder / "cdi").glob("[!.]*.json"):
        if not any(record["uid"] in file.name for record in records):
            yield f"{file.name} is there"


def main(folder: Path, whole: bool) -> int:
    """End at every step, twice in some lives; returns how many ends there were, or 0 where something went wrong.

    After each end the claims are still wanted, or are not: the one or the other in turn, or the `whole`, both.
    """
    work_queue.FIRST = work_queue.LONGEST_DELAY = 0.01  # type: ignore[misc]
    at, ends = 1, 0
    while True:
        life = folder / f"{at}"
        life.mkdir()
        status = begin(life, at)
        if status == 0:
            return ends
        ends += 1
        if status != KILLED or (problems := [*left_over(life)]):
            print(f"step {at}: status {status}, {problems if status == KILLED else ''}")
            return 0
        other = folder / f"{at}-gone"
        shutil.copytree(life, other)
        again = begin(life, at // 2) if at % 3 == 0 else KILLED  # it ends a second time, while it recovers
        ends += again == KILLED and at % 3 == 0
        lives = ((life, False), (other, True)) if whole else ((other, True),) if at % 2 else ((life, False),)
        if again not in (0, KILLED) or any(begin(where, 0, gone) for where, gone in lives):
            print(f"step {at}: not recovered")
            return 0
        at += 1


if __name__ == "__main__":
    ends = main(Path(sys.argv[1]), whole="whole" in sys.argv)
    print(f"{ends} ends")
    sys.exit(not ends)
