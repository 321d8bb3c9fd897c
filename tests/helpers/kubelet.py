"""A fake kubelet that talks to a plugin over Unix sockets."""

from pathlib import Path

import grpc

from poolwise_agents.node_agent.api import dra_pb2, registration_pb2
from poolwise_agents.node_agent.plugin import DRA, REGISTRATION
from tests.helpers.waiting import longest_s


class Kubelet:
    """Registers the plugin in a folder and sends prepare and unprepare requests."""

    def __init__(self, registry: Path) -> None:
        (self.socket,) = registry.glob("*.sock")
        self.endpoint = ""

    async def register(self, error: str = "") -> registration_pb2.PluginInfo:
        async with grpc.aio.insecure_channel(f"unix:{self.socket}") as channel:
            get_info = channel.unary_unary(
                f"/{REGISTRATION}/GetInfo",
                registration_pb2.InfoRequest.SerializeToString,
                registration_pb2.PluginInfo.FromString,
            )
            notify = channel.unary_unary(
                f"/{REGISTRATION}/NotifyRegistrationStatus",
                registration_pb2.RegistrationStatus.SerializeToString,
                registration_pb2.RegistrationStatusResponse.FromString,
            )
            info: registration_pb2.PluginInfo = await get_info(registration_pb2.InfoRequest())
            await notify(registration_pb2.RegistrationStatus(plugin_registered=not error, error=error))
        self.endpoint = info.endpoint
        return info

    async def prepare(self, *claims: tuple[str, str]) -> dra_pb2.NodePrepareResourcesResponse:
        request = dra_pb2.NodePrepareResourcesRequest(claims=[_claim(*claim) for claim in claims])
        return await self._call("NodePrepareResources", request, dra_pb2.NodePrepareResourcesResponse)

    async def unprepare(self, *claims: tuple[str, str]) -> dra_pb2.NodeUnprepareResourcesResponse:
        request = dra_pb2.NodeUnprepareResourcesRequest(claims=[_claim(*claim) for claim in claims])
        return await self._call("NodeUnprepareResources", request, dra_pb2.NodeUnprepareResourcesResponse)

    async def _call(self, method: str, request, response):  # type: ignore[no-untyped-def]
        async with grpc.aio.insecure_channel(f"unix:{self.endpoint}") as channel:
            call = channel.unary_unary(f"/{DRA}/{method}", type(request).SerializeToString, response.FromString)
            return await call(request, timeout=longest_s())


def _claim(name: str, uid: str) -> dra_pb2.Claim:
    return dra_pb2.Claim(namespace="default", name=name, uid=uid)
