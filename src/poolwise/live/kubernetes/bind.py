"""Pod binding: reserve claims, wait for binding conditions, then bind the pods of a start.

The pods of a start are bound only after all of them are prepared. A write without a response is verified before it is retried.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from poolwise.live.kubernetes.api_writer import BIND, CLAIM, ApiWriter
from poolwise.live.kubernetes.claim_reservation import Reservations
from poolwise.live.kubernetes.client import ApiError
from poolwise.live.kubernetes.starts import BindFailed, Bound, PodStart, StartFailed, pod_path


class Binder:
    """Binds the pods of starts.

    Parameters
    ----------
    writer, reservations : write pods and claims
    report : receives the outcome of each start

    Attributes
    ----------
    deleted_nodes : names of deleted nodes; the API server would still bind pods to them
    """

    def __init__(self, writer: ApiWriter, reservations: Reservations, report: Callable[[Bound | BindFailed], None]) -> None:
        self._writer, self._reservations, self._report = writer, reservations, report
        self.deleted_nodes: set[str] = set()

    async def start(self, run: int, pods: Sequence[PodStart]) -> None:
        """Bind the pods of a run, or undo the start, and report the outcome."""
        bound: list[str] = []
        try:
            await _await_all(self._prepare(pod) for pod in pods)
            results = await asyncio.gather(*(self._bind(pod) for pod in pods), return_exceptions=True)
            bound = [pod.pod.metadata.key for pod, result in zip(pods, results, strict=True) if result is None]
            for result in results:
                if result is not None:
                    raise result
        except (StartFailed, ApiError) as problem:
            await self._undo([pod for pod in pods if pod.pod.metadata.key not in bound])
            self._report(BindFailed(run, str(problem), tuple(bound), getattr(problem, "failed", ())))
            return
        self._report(Bound(run))

    async def _prepare(self, start: PodStart) -> None:
        """Nominate the node, reserve the claims and wait until their devices are attached."""
        if start.nominate and start.pod.status.nominated_node_name != start.node:
            path = f"{pod_path(start.pod)}/status"
            await self._writer.retry(lambda: self._writer.patch(path, _nomination(start), CLAIM), conflicts=True)
        ready = [await self._reservations.reserve(start, write) for write in start.claims]
        for claim in ready:
            await self._reservations.wait_attached(claim)

    async def _bind(self, start: PodStart) -> None:
        """Bind a pod to its node, verifying the pod after each failed attempt."""
        meta, until = start.pod.metadata, time.monotonic() + self._writer.retry_timeout
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": start.node},
        }
        while True:
            if start.node in self.deleted_nodes:
                raise StartFailed(f"node {start.node} was deleted")
            try:
                await self._writer.post(f"{pod_path(start.pod)}/binding", body, BIND)
                return
            except ApiError as error:
                if not (error.is_temporary or error.status in (404, 409)):
                    raise
                wait, first = max(error.retry_after, 0.05), error
            pod = await self._writer.retry(lambda: self._writer.read_pod(start.pod))
            if pod.spec.node_name == start.node:
                return
            if pod.spec.node_name or pod.spec.scheduling_gates or time.monotonic() > until:
                suffix = f"; it is on node {pod.spec.node_name}" if pod.spec.node_name else ""
                raise StartFailed(f"cannot bind pod {meta.key}: {first}{suffix}")
            await asyncio.sleep(wait)

    async def _undo(self, pods: Sequence[PodStart]) -> None:
        """Release the claims of pods that were not bound; failed releases are repeated before the next start."""
        for start in pods:
            for write in start.claims:
                try:
                    await self._reservations.release(write.claim, start.pod.metadata.uid)
                except (ApiError, StartFailed):
                    continue


async def _await_all(steps: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Await all steps, then raise the first failure."""
    for result in await asyncio.gather(*steps, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


def _nomination(start: PodStart) -> dict[str, Any]:
    return {"metadata": {"uid": start.pod.metadata.uid}, "status": {"nominatedNodeName": start.node}}
