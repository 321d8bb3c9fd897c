"""`poolwise run` runs the study of a snapshot under the scheduler for which the cluster was read."""

from pathlib import Path
from typing import Any

import pytest

from poolwise.cli.live import named_scheduler
from poolwise.files.state import write_state
from poolwise.files.state_study import study_of
from poolwise.live.platform import LiveView
from poolwise.studies import load, run
from tests.helpers.played_cluster import FakeKubernetes
from tests.live.kubernetes import objects as make
from tests.live.kubernetes.order import CASES, Case


def play(case: Case) -> FakeKubernetes:
    """The cluster of a case with eight pods, with claims as the claim controller creates them."""
    templates = {
        item["metadata"]["name"]: item["spec"]["spec"] for item in case.cluster if item["kind"] == "ResourceClaimTemplate"
    }
    kube = FakeKubernetes(*(item for item in case.cluster if item["kind"] != "ResourceClaimTemplate"))
    for k in range(8):
        pod: dict[str, Any] = case.pod(k, 3 + k % 3)
        statuses = []
        for use in pod["spec"].get("resourceClaims", []):
            name = f"{pod['metadata']['name']}-{use['name']}"
            claim = {**make.claim(name), "spec": templates[use["resourceClaimTemplateName"]]}
            owner = {"kind": "Pod", "name": pod["metadata"]["name"], "uid": "-", "apiVersion": "v1"}
            claim["metadata"]["ownerReferences"] = [owner]
            kube.add(claim)
            statuses.append({"name": use["name"], "resourceClaimName": name})
        kube.add({**pod, "status": {"resourceClaimStatuses": statuses}})
    return kube


@pytest.mark.parametrize("name", CASES)
def test_study_of_a_snapshot_runs(name: str, tmp_path: Path) -> None:
    case, scheduler = CASES[name], CASES[name].scheduler
    if not scheduler.startswith("catalog:"):
        (tmp_path / "scheduler.toml").write_text(scheduler)
        scheduler = str(tmp_path / "scheduler.toml")
    driven = play(case).open(named_scheduler(scheduler))
    view = LiveView(driven.loop.queue, driven.platform.snapshot())
    state = view.state("a test", scheduler)
    assert state.running and len(state.waiting), "some jobs run and some wait"
    write_state(state, tmp_path / "now", study_of(state, tmp_path / "now"))
    result = run(load(tmp_path / "now"), tmp_path / "out", jobs=1)
    assert [cell.jobs for cell in result.cells] == [8] * len(result.cells)
    assert all(cell.waiting == 0 and not cell.rejected for cell in result.cells)
    assert len(result.cells) == (1 if name == "flow" else 2)
