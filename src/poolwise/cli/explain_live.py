"""`poolwise explain live`: why a job or pod of a cluster waits now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from poolwise.cli.console import print_line
from poolwise.cli.examples import command
from poolwise.cli.explain import explanations
from poolwise.cli.live_cluster import ClusterName, observe
from poolwise.cli.output import print_json, provenance
from poolwise.cli.shared_options import ClusterSchedulerOption, JsonOption, PartitionOption, PodSchedulerOption

if TYPE_CHECKING:
    from poolwise.live.platform import LivePlatform

live = typer.Typer(help="Explain why a job waits on a cluster now.", no_args_is_help=True)


@command(live, "poolwise explain live slurm 4711 --scheduler catalog:fm-easy")
def slurm(
    job: Annotated[str, typer.Argument(metavar="JOB", help="Id of the waiting job.")],
    scheduler: ClusterSchedulerOption,
    partition: PartitionOption = None,
    json: JsonOption = False,
) -> None:
    """Explain why a job waits on a Slurm cluster."""
    _explain(job, observe(ClusterName.SLURM, partition, scheduler), scheduler, json)


@command(live, "poolwise explain live kubernetes default/p5 --scheduler catalog:fm-easy")
def kubernetes(
    pod: Annotated[str, typer.Argument(metavar="POD", help="Waiting pod, as NAMESPACE/NAME.")],
    scheduler: ClusterSchedulerOption,
    name: PodSchedulerOption = "poolwise",
    json: JsonOption = False,
) -> None:
    """Explain why a pod waits on the cluster that $KUBECONFIG names."""
    _explain(pod, observe(ClusterName.KUBERNETES, name, scheduler), scheduler, json)


def _explain(job: str, platform: LivePlatform, scheduler: str, json: bool) -> None:
    """Print the reason why a job waits under the given scheduler."""
    from poolwise.cli.live import named_scheduler
    from poolwise.live.platform import LiveView
    from poolwise.live.wait_reasons import WaitReasons
    from poolwise.loop import Loop

    chosen = named_scheduler(scheduler)
    loop = Loop(platform, chosen)
    loop.apply_events(next(iter(platform.events())))  # an observed platform refuses every start
    snapshot = platform.snapshot()
    rejected = {snapshot.table.name(row): why for row, why in loop.result.rejected.items()}
    found = None
    if job not in rejected:
        row = LiveView(loop.queue, snapshot).find(job)
        found = WaitReasons(chosen, loop, snapshot, (row,)).of(row)
    text = found.text if found is not None else rejected.get(job, "it can start now")
    if not json:
        print_line(f"job {job}: {text}")
        return
    content: dict[str, object] = {"job": job, "text": text, "rule": None}
    if found is not None:
        reason = found.reason
        content |= {
            "rule": reason.rule.value, "resource": reason.resource, "needed": reason.needed, "free": reason.free
        }  # fmt: skip
    print_json(content, provenance(None, []))


explanations.add_typer(live, name="live")
