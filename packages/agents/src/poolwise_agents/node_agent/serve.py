"""Runs a node agent until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import signal
from contextlib import nullcontext

from poolwise.errors import PoolwiseError
from poolwise.live.control_loop import exclusive_lock, make_folder
from poolwise.live.endpoints import serve_endpoints
from poolwise.live.kubernetes.access import Access
from poolwise.live.kubernetes.client import Client
from poolwise.live.kubernetes.informer import Informer
from poolwise.live.kubernetes.link_traffic import links_driver
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.logs import log_event
from poolwise.quantities import to_seconds
from poolwise_agents.node_agent.agent import NodeAgent
from poolwise_agents.node_agent.cdi import CdiFolder
from poolwise_agents.node_agent.cluster import CLAIMS, AgentCluster
from poolwise_agents.node_agent.commands import run_command
from poolwise_agents.node_agent.config import NodeAgentFile
from poolwise_agents.node_agent.connector import Connector
from poolwise_agents.node_agent.links import LinkMeter, link_specs
from poolwise_agents.node_agent.plugin import KubeletPlugin
from poolwise_agents.node_agent.records import Records
from poolwise_agents.node_agent.slices import Specs, desired_specs, publish_slices

_PUBLISH_S = 30.0  # interval at which slices are checked (s), since kubelets delete the slices of an unavailable plugin


def serve_node_agent(file: NodeAgentFile, node: str, access: Access, port: int | None) -> None:
    """Run a node agent until SIGTERM or SIGINT; raises InputError if folders, sockets or the port are not available."""
    for folder in (file.folders.cdi, file.folders.plugins, file.folders.registry):
        make_folder(folder)
    with exclusive_lock(file.folders.state, "node agent"):
        asyncio.run(_serve(file, node, access, port))


async def _serve(file: NodeAgentFile, node: str, access: Access, port: int | None) -> None:
    client = Client(access, connections=8)
    cluster = AgentCluster(client)
    records, cdi = Records(file.folders.state), CdiFolder(file.folders.cdi, file.driver)
    agent = NodeAgent(file, node, cluster, Connector(records, cdi, run_command))
    published, kubelet = asyncio.Event(), asyncio.Event()

    def registered(error: str) -> None:
        agent.metrics.registered.set(not error)
        (kubelet.clear if error else kubelet.set)()
        event = "plugin_registration_failed" if error else "plugin_registered"
        log_event(event, logging.ERROR if error else logging.INFO, why=error)

    def not_ready() -> str:
        ready = {"the kubelet": kubelet.is_set(), "the claims": agent.synced, "the slices": published.is_set()}
        return ", ".join(f"{what} not yet" for what, done in ready.items() if not done)

    plugin = KubeletPlugin(file.driver, agent.prepare, agent.unprepare, registered)
    informer = Informer(client, CLAIMS, ResourceClaim, agent.handle_event)
    coroutines = [informer.run(), agent.queue.wait_for_error(), _publish_devices(agent, published), _wait_for_signal()]
    if file.links is not None:
        coroutines.append(_measure_links(agent, LinkMeter(file.links)))
    tasks: list[asyncio.Task[None]] = []
    try:
        with nullcontext() if port is None else serve_endpoints(agent.metrics.registry, not_ready, port):
            async with plugin.serving(file.folders.plugins, file.folders.registry):
                agent.resume()
                log_event("agent_started", driver=file.driver, node=node)
                tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await agent.queue.stop()
        await client.close()
        log_event("stopped")


async def _wait_for_signal() -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await stop.wait()


async def _publish_devices(agent: NodeAgent, published: asyncio.Event) -> None:
    specs = desired_specs(agent.file, agent.node)
    while True:
        if await _publish(agent, agent.file.driver, specs):
            published.set()
        await asyncio.sleep(_PUBLISH_S if published.is_set() else 1.0)


async def _measure_links(agent: NodeAgent, meter: LinkMeter) -> None:
    """Measure links; update metrics after each sample, and slices after sufficient changes."""
    driver = agent.file.driver
    await meter.sample()
    while True:
        await asyncio.sleep(to_seconds(meter.section.every))
        measured = await meter.sample()
        for name, traffic in measured.items():
            agent.metrics.link_load.labels(name).set(traffic.load)
            agent.metrics.link_bytes.labels(name).set(traffic.used * 1e6)
        await _publish(agent, links_driver(driver), link_specs(driver, agent.node, meter.to_publish(measured)))


async def _publish(agent: NodeAgent, driver: str, specs: Specs) -> bool:
    """Update slices and return whether the API server accepted them."""
    try:
        writes = await publish_slices(agent.cluster, agent.node, driver, specs)
    except PoolwiseError as error:
        agent.metrics.failures.labels("publish").inc()
        log_event("slice_publish_failed", logging.WARNING, driver=driver, why=str(error))
        return False
    agent.metrics.writes.inc(writes)
    if writes:
        log_event("slices_published", driver=driver, writes=writes)
    return True
