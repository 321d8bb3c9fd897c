"""Runs a node agent until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from poolwise.errors import InputError, PoolwiseError
from poolwise.live.endpoints import serve_endpoints
from poolwise.live.kubernetes.access import Access
from poolwise.live.kubernetes.client import Client
from poolwise.live.kubernetes.informer import Informer
from poolwise.live.kubernetes.link_traffic import links_driver
from poolwise.live.kubernetes.objects import ResourceClaim
from poolwise.live.logs import log_event
from poolwise.live.node_agent.agent import NodeAgent
from poolwise.live.node_agent.cdi import CdiFolder
from poolwise.live.node_agent.cluster import CLAIMS, ServerCluster
from poolwise.live.node_agent.commands import run_command
from poolwise.live.node_agent.config import NodeAgentFile
from poolwise.live.node_agent.connector import Connector
from poolwise.live.node_agent.links import LinkMeter, link_specs
from poolwise.live.node_agent.plugin import KubeletPlugin
from poolwise.live.node_agent.records import Records
from poolwise.live.node_agent.slices import Specs, publish_slices, wanted_specs
from poolwise.live.single_instance import exclusive_lock
from poolwise.units import to_seconds

_PUBLISH_S = 30.0
"""Seconds between two looks whether the slices are as they should be: kubelets delete those of a plugin that is away."""


def serve_node_agent(file: NodeAgentFile, node: str, access: Access, port: int | None) -> None:
    """Run a node agent until SIGTERM or SIGINT. Raises InputError for folders, sockets and ports that cannot be had."""
    _make_folders(file)
    with exclusive_lock(file.folders.state, "node agent"):
        asyncio.run(_serve(file, node, access, port))


def _make_folders(file: NodeAgentFile) -> None:
    folders = file.folders
    for folder in (folders.state, folders.cdi, folders.plugins, folders.registry):
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700 if folder == folders.state else 0o755)
        except OSError as error:
            raise InputError(
                f"cannot be made: {error.strerror}", file=folder, remedy="run as root, or name folders of your own"
            ) from error


async def _serve(file: NodeAgentFile, node: str, access: Access, port: int | None) -> None:
    client = Client(access, connections=8)
    cluster = ServerCluster(client)
    records, cdi = Records(file.folders.state), CdiFolder(file.folders.cdi, file.driver)
    agent = NodeAgent(file, node, cluster, Connector(records, cdi, run_command))
    published = asyncio.Event()
    kubelet = asyncio.Event()

    def registered(error: str) -> None:
        agent.metrics.registered.set(not error)
        (kubelet.clear if error else kubelet.set)()
        log_event(
            "the kubelet did not take the plugin" if error else "registered",
            logging.ERROR if error else logging.INFO,
            why=error,
        )

    def not_ready() -> str:
        waits = {"the kubelet": kubelet.is_set(), "the claims": agent.synced, "the slices": published.is_set()}
        return ", ".join(f"{what} not yet" for what, done in waits.items() if not done)

    plugin = KubeletPlugin(file.driver, agent.prepare, agent.unprepare, registered)
    follower = Informer(client, CLAIMS, ResourceClaim, agent.handle_event)
    work = [follower.run(), agent.work.watch(), _devices(agent, published), _stopped()]
    if file.links is not None:
        work.append(_links(agent, LinkMeter(file.links)))
    tasks: list[asyncio.Task[None]] = []
    try:
        with _endpoints(agent, not_ready, port):
            async with plugin.serving(file.folders.plugins, file.folders.registry):
                agent.resume()
                log_event("serving", driver=file.driver, node=node)
                tasks = [asyncio.ensure_future(one) for one in work]
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await agent.work.stop()
        await client.close()
        log_event("stopped")


@contextmanager
def _endpoints(agent: NodeAgent, not_ready: Callable[[], str], port: int | None) -> Iterator[None]:
    if port is None:
        yield
        return
    with serve_endpoints(agent.metrics.registry, not_ready, port) as (host, chosen):
        log_event("listening", address=f"http://{host}:{chosen}/metrics")
        yield


async def _stopped() -> None:
    """Wait for SIGTERM or SIGINT."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await stop.wait()


async def _devices(agent: NodeAgent, published: asyncio.Event) -> None:
    """Keep the slices of devices as they should be."""
    wanted = wanted_specs(agent.file, agent.node)
    while True:
        if await _publish(agent, agent.file.driver, wanted):
            published.set()
        await asyncio.sleep(_PUBLISH_S if published.is_set() else 1.0)


async def _links(agent: NodeAgent, meter: LinkMeter) -> None:
    """Measure links and tell of them, in metrics each time, in slices where enough has changed."""
    driver = agent.file.driver
    await meter.look()
    while True:
        await asyncio.sleep(to_seconds(meter.section.every))
        found = await meter.look()
        for name, traffic in found.items():
            agent.metrics.link_load.labels(name).set(traffic.load)
            agent.metrics.link_bytes.labels(name).set(traffic.used * 1e6)
        await _publish(agent, links_driver(driver), link_specs(driver, agent.node, meter.worth_telling(found)))


async def _publish(agent: NodeAgent, driver: str, wanted: Specs) -> bool:
    """Make slices what they should be, if the API server can be asked."""
    try:
        writes = await publish_slices(agent.cluster, agent.node, driver, wanted)
    except PoolwiseError as error:
        agent.metrics.failures.labels("publish").inc()
        log_event("slices could not be published", logging.WARNING, driver=driver, why=str(error))
        return False
    agent.metrics.writes.inc(writes)
    if writes:
        log_event("slices published", driver=driver, writes=writes)
    return True
