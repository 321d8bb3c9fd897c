"""What a start writes: claims get their devices, binding conditions are awaited, pods are bound.

Pods of one start are bound once all of them can be. A write without an answer is looked up before it is repeated.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from poolwise.live.kubernetes.api_writer import BIND, CLAIM, ApiWriter
from poolwise.live.kubernetes.claim_reservation import Reservations
from poolwise.live.kubernetes.client import ApiError
from poolwise.live.kubernetes.starts import Bound, NotBound, PodStart, StartFailed, pod_path


class Binder:
    """Makes starts real.

    Parameters
    ----------
    tell
        Takes what became of each start.

    Attributes
    ----------
    gone : nodes that are there no longer: the API server would bind pods to them
    """

    def __init__(self, writer: ApiWriter, reservations: Reservations, tell: Callable[[Bound | NotBound], None]) -> None:
        self._writer, self._reservations, self._tell = writer, reservations, tell
        self.gone: set[str] = set()

    async def start(self, run: int, pods: Sequence[PodStart]) -> None:
        """Make a start real, or undo it."""
        bound: list[str] = []
        try:
            await _all(self._prepare(pod) for pod in pods)
            results = await asyncio.gather(*(self._bind(pod) for pod in pods), return_exceptions=True)
            bound = [pod.pod.metadata.key for pod, result in zip(pods, results, strict=True) if result is None]
            for result in results:
                if result is not None:
                    raise result
        except (StartFailed, ApiError) as problem:
            await self._undo([pod for pod in pods if pod.pod.metadata.key not in bound])
            self._tell(NotBound(run, str(problem), tuple(bound), getattr(problem, "failed", ())))
            return
        self._tell(Bound(run))

    async def _prepare(self, start: PodStart) -> None:
        """Do all that comes before a pod is bound."""
        if start.nominate and start.pod.status.nominated_node_name != start.node:
            path = f"{pod_path(start.pod)}/status"
            await self._writer.again(lambda: self._writer.patch(path, _nomination(start), CLAIM), conflicts=True)
        ready = [await self._reservations.reserve(start, write) for write in start.claims]
        for claim in ready:
            await self._reservations.attached(claim)

    async def _bind(self, start: PodStart) -> None:
        """Bind a pod to its node."""
        meta, until = start.pod.metadata, time.monotonic() + self._writer.patience
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": start.node},
        }
        while True:
            if start.node in self.gone:
                raise StartFailed(f"node {start.node} is gone")
            try:
                await self._writer.post(f"{pod_path(start.pod)}/binding", body, BIND)
                return
            except ApiError as error:
                if not (error.passes or error.status in (404, 409)):
                    raise
                wait, first = max(error.retry_after, 0.05), error
            pod = await self._writer.again(lambda: self._writer.read_pod(start.pod))
            if pod.spec.node_name == start.node:
                return
            if pod.spec.node_name or pod.spec.scheduling_gates or time.monotonic() > until:
                where = f"; it is on node {pod.spec.node_name}" if pod.spec.node_name else ""
                raise StartFailed(f"pod {meta.key} could not be bound: {first}{where}")
            await asyncio.sleep(wait)

    async def _undo(self, pods: Sequence[PodStart]) -> None:
        """Take back the claims of pods that were not bound; what fails here is cleared later."""
        for start in pods:
            for write in start.claims:
                try:
                    await self._reservations.release(write.claim, start.pod.metadata.uid)
                except (ApiError, StartFailed):
                    continue


async def _all(steps: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Await all of some steps, then raise the first failure."""
    for result in await asyncio.gather(*steps, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


def _nomination(start: PodStart) -> dict[str, Any]:
    return {"metadata": {"uid": start.pod.metadata.uid}, "status": {"nominatedNodeName": start.node}}
