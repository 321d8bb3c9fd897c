"""Wait reasons and snapshots format cores as cores, although schedulers count thousandths."""

from pathlib import Path

from poolwise.files.state import read_state, write_state
from poolwise.live.platform import LiveView
from poolwise.live.wait_reasons import WaitReasons, why_waits
from poolwise.model import Changes
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import FakeKubernetes
from tests.live.kubernetes import objects as make

FIRST_FIT = ListScheduler(placement=FirstNodes())


def test_wait_reason_names_the_job_whose_need_it_states() -> None:
    in_order = ListScheduler(placement=FirstNodes(), backfill=NoBackfill())
    kube = FakeKubernetes(
        make.node("n0", cpu="2"), make.pod("a", cpu="500m"), make.pod("b", cpu="2"), make.pod("c", cpu="500m")
    )
    driven = kube.open(in_order)
    queue, snapshot = driven.loop.queue, driven.platform.snapshot()
    reasons = WaitReasons(in_order, driven.loop, snapshot, queue.jobs.tolist())
    own, blocked = (reasons.of(job) for job in queue.jobs.tolist())
    assert own is not None and ": needs 2 cores, 1.5 cores free" in own.text
    assert blocked is not None and "b needs 2 cores, 1.5 cores free" in blocked.text


def test_wait_reason_is_formatted_in_cores(tmp_path: Path) -> None:
    kube = FakeKubernetes(make.node("n0", cpu="2"), make.pod("a", cpu="500m"), make.pod("b", cpu="2"))
    driven = kube.open(FIRST_FIT)
    queue, snapshot = driven.loop.queue, driven.platform.snapshot()
    dispatcher = FIRST_FIT.open(snapshot.machine, 0)
    job = int(queue.jobs[0])
    reason = why_waits(
        dispatcher, job, queue, snapshot, dispatcher.schedule(queue, snapshot, Changes(explain=frozenset({job})))
    )
    assert reason is not None and "needs 2 cores, 1.5 cores free" in reason.text
    write_state(LiveView.of(driven.platform).state("a test"), tmp_path / "state")
    machine = read_state(tmp_path / "state").machine
    assert machine.amount_text("cores", 1500) == "1.5" and machine.amount_text("cores", 2000) == "2"
