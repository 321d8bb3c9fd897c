"""Kubelet plugin of the DRA driver: registration, prepare and unprepare over Unix sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from poolwise.errors import InputError, PoolwiseError
from poolwise_agents.node_agent.api import dra_pb2, registration_pb2
from poolwise_agents.node_agent.records import ClaimRecord

DRA = "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
REGISTRATION = "pluginregistration.Registration"
VERSIONS = ("v1.DRAPlugin",)  # versions of the DRA service that the plugin offers
_MAX_SOCKET_PATH = 107  # maximum length of the path of a Unix socket on Linux (bytes)


@dataclass
class KubeletPlugin:
    """Serves the requests of a kubelet.

    `prepare` takes namespace, name and uid of a claim, and returns the record and the CDI names of each device; `unprepare`
    takes the uid; `registered` receives the result of the registration, "" or an error.
    """

    driver: str
    prepare: Callable[[str, str, str], Awaitable[tuple[ClaimRecord, list[list[str]]]]]
    unprepare: Callable[[str], Awaitable[None]]
    registered: Callable[[str], None]

    @asynccontextmanager
    async def serving(self, plugins: Path, registry: Path) -> AsyncIterator[None]:
        """Serve both sockets while the context is open; raises InputError if a socket cannot be created."""
        home = plugins / self.driver
        home.mkdir(parents=True, exist_ok=True, mode=0o750)
        endpoint, registration = home / "dra.sock", registry / f"{self.driver}-reg.sock"
        main, register = grpc.aio.server(), grpc.aio.server()
        main.add_generic_rpc_handlers((self._dra(),))
        register.add_generic_rpc_handlers((self._registration(endpoint),))
        try:
            for server, socket in ((main, endpoint), (register, registration)):
                _bind(server, socket)
                await server.start()
                socket.chmod(0o600)
            yield
        finally:
            await register.stop(0)
            registration.unlink(missing_ok=True)
            await main.stop(1)
            endpoint.unlink(missing_ok=True)

    def _dra(self) -> grpc.GenericRpcHandler:
        async def prepare(request: dra_pb2.NodePrepareResourcesRequest, _: object) -> dra_pb2.NodePrepareResourcesResponse:
            response = dra_pb2.NodePrepareResourcesResponse()
            for claim in request.claims:
                response.claims[claim.uid].CopyFrom(await self._prepare_claim(claim))
            return response

        async def unprepare(
            request: dra_pb2.NodeUnprepareResourcesRequest, _: object
        ) -> dra_pb2.NodeUnprepareResourcesResponse:
            response = dra_pb2.NodeUnprepareResourcesResponse()
            for claim in request.claims:
                response.claims[claim.uid].error = ""
                try:
                    await self.unprepare(claim.uid)
                except PoolwiseError as error:
                    response.claims[claim.uid].error = str(error)
            return response

        return _service(
            DRA,
            NodePrepareResources=(prepare, dra_pb2.NodePrepareResourcesRequest, dra_pb2.NodePrepareResourcesResponse),
            NodeUnprepareResources=(unprepare, dra_pb2.NodeUnprepareResourcesRequest, dra_pb2.NodeUnprepareResourcesResponse),
        )

    async def _prepare_claim(self, claim: dra_pb2.Claim) -> dra_pb2.NodePrepareResourceResponse:
        try:
            record, names = await self.prepare(claim.namespace, claim.name, claim.uid)
        except PoolwiseError as error:
            return dra_pb2.NodePrepareResourceResponse(error=str(error) or type(error).__name__)
        devices = [
            dra_pb2.Device(
                request_names=[device.request],
                pool_name=device.pool,
                device_name=device.device,
                cdi_device_ids=ids,
                share_id=device.share or None,
            )
            for device, ids in zip(record.devices, names, strict=True)
        ]
        return dra_pb2.NodePrepareResourceResponse(devices=devices)

    def _registration(self, endpoint: Path) -> grpc.GenericRpcHandler:
        info = registration_pb2.PluginInfo(
            type="DRAPlugin", name=self.driver, endpoint=str(endpoint), supported_versions=VERSIONS
        )

        async def get_info(_: registration_pb2.InfoRequest, __: object) -> registration_pb2.PluginInfo:
            return info

        async def notify(status: registration_pb2.RegistrationStatus, _: object) -> registration_pb2.RegistrationStatusResponse:
            self.registered("" if status.plugin_registered else status.error or "the kubelet gave no reason")
            return registration_pb2.RegistrationStatusResponse()

        status, response = registration_pb2.RegistrationStatus, registration_pb2.RegistrationStatusResponse
        return _service(
            REGISTRATION,
            GetInfo=(get_info, registration_pb2.InfoRequest, registration_pb2.PluginInfo),
            NotifyRegistrationStatus=(notify, status, response),
        )


def _service(name: str, **methods: tuple[Callable[..., Any], Any, Any]) -> grpc.GenericRpcHandler:
    """Return a service: name of each method -> function, message of the request, message of the response."""
    handlers = {
        method: grpc.unary_unary_rpc_method_handler(function, request.FromString, response.SerializeToString)
        for method, (function, request, response) in methods.items()
    }
    return grpc.method_handlers_generic_handler(name, handlers)


def _bind(server: grpc.aio.Server, socket: Path) -> None:
    """Bind a socket, replacing one left behind by an earlier process."""
    if len(bytes(socket)) > _MAX_SOCKET_PATH:
        raise InputError(
            f"the path exceeds {_MAX_SOCKET_PATH} bytes, the limit for sockets", file=socket, remedy="use another folder"
        )
    try:
        socket.unlink(missing_ok=True)
        server.add_insecure_port(f"unix:{socket}")
    except (OSError, RuntimeError) as error:
        raise InputError(
            f"cannot create the socket: {error}", file=socket, remedy="create the folder, or run as root"
        ) from error
