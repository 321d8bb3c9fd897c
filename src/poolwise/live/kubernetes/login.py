"""Expiring credentials of a kubeconfig, from an exec plugin or an OpenID Connect provider.

The Kubernetes client library (extra `kubernetes-login`) runs the plugin and refreshes the provider's token.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import math
import os
import ssl
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poolwise.errors import InputError

_MARGIN_S = 60.0  # time before the expiry at which credentials are renewed
_RETRY_S = 10.0  # least time between renewals, unless the server rejects the credentials


@dataclass(frozen=True)
class Credentials:
    """A bearer token, "" if a client certificate replaces it, and its expiry in s since 1970."""

    token: str
    expires: float = math.inf


class Login:
    """A bearer token that is renewed before it expires; raises InputError if the first one cannot be obtained.

    `obtain` gets new credentials; it blocks, and may raise any error. The other parameters locate the login in errors.
    """

    def __init__(self, obtain: Callable[[], Credentials], file: Path, field: str, remedy: str) -> None:
        self._obtain, self._file, self._field, self._remedy = obtain, file, field, remedy
        self._current, self._due = Credentials(""), 0.0
        self._lock = asyncio.Lock()
        self.renew()

    def renew(self) -> None:
        """Obtain new credentials; raise InputError."""
        self._due = time.time() + _RETRY_S
        try:
            self._current = self._obtain()
        except Exception as error:  # the library and the packages that it uses share no base class
            raise InputError(
                f"cannot obtain credentials: {error}", file=self._file, field=self._field, remedy=self._remedy
            ) from error
        self._due = max(self._current.expires - _MARGIN_S, self._due)

    async def bearer_token(self) -> str:
        """Return the current token, renewed if it is due; raise InputError if it expired and cannot be renewed."""
        if time.time() >= self._due:
            async with self._lock:
                if time.time() >= self._due:
                    try:
                        await asyncio.to_thread(self.renew)
                    except InputError:
                        if time.time() >= self._current.expires:
                            raise
        return self._current.token

    def reject(self, token: str) -> None:
        """Renew at the next request, unless the token was already renewed."""
        if token == self._current.token:
            self._due = 0.0


def exec_login(plugin: Any, cluster: Mapping[str, Any], tls: ssl.SSLContext | None, file: Path) -> Login:
    """Return the login of a credential plugin; a client certificate that it returns is loaded into `tls`."""
    _require_library("exec", file)
    from kubernetes.config.dateutil import parse_rfc3339
    from kubernetes.config.exec_provider import ExecProvider
    from kubernetes.config.kube_config import ConfigNode

    def obtain() -> Credentials:
        provider = ExecProvider(ConfigNode("exec", plugin), str(file.parent), ConfigNode("cluster", cluster))
        status = provider.run()
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        if certificate and key and tls is not None:
            load_pair(tls, certificate.encode(), key.encode())
        elif not status.get("token"):
            raise ValueError("the plugin returned neither a token nor a client certificate with its key")
        until = status.get("expirationTimestamp")
        return Credentials(status.get("token", ""), parse_rfc3339(until).timestamp() if until else math.inf)

    hint = plugin.get("installHint") if isinstance(plugin, dict) else None
    return Login(obtain, file, "users.user.exec", hint or "run the plugin's command and correct its error")


def oidc_login(provider: Any, file: Path, files: Sequence[Path], context: str) -> Login:
    """Return the login of the OIDC provider of a context; renewed tokens are written to its file if possible."""
    field = "users.user.auth-provider"
    if not isinstance(provider, dict) or provider.get("name") != "oidc":
        name = provider.get("name") if isinstance(provider, dict) else provider
        remedy = "use an exec plugin, which replaces the cloud auth providers"
        raise InputError(f"the auth-provider '{name}' is not supported", file=file, field=f"{field}.name", remedy=remedy)
    settings = provider.get("config") or {}
    if not {"idp-certificate-authority", "idp-certificate-authority-data"} & set(settings):  # the library would not verify it
        problem = "the certificate authority of the OIDC issuer is not set"
        remedy = "give its file, such as /etc/ssl/certs/ca-certificates.crt for public issuers"
        raise InputError(problem, file=file, field=f"{field}.config.idp-certificate-authority", remedy=remedy)
    _require_library("auth-provider", file)
    from kubernetes.client import Configuration
    from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger

    merged = KubeConfigMerger(os.pathsep.join(map(str, files)))

    def save() -> None:
        with contextlib.suppress(OSError):  # a read-only file
            merged.save_changes()

    loader = KubeConfigLoader(merged.config, context, config_base_path=None, config_persister=save)

    def obtain() -> Credentials:
        configuration = Configuration()
        loader.load_and_set(configuration)
        token = configuration.api_key["BearerToken"].removeprefix("Bearer ")
        claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
        expires = float(claims.get("exp", math.inf))
        if time.time() >= expires:
            raise ValueError("the issuer did not refresh the expired token")
        return Credentials(token, expires)

    return Login(obtain, file, field, "log in again with the tool that wrote the kubeconfig")


def load_pair(tls: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a client certificate and its key from PEM text."""
    with tempfile.TemporaryDirectory() as folder:  # the ssl module loads certificates from files only
        pair = Path(folder) / "pair.pem"
        pair.touch(mode=0o600)
        pair.write_bytes(certificate + b"\n" + key)
        tls.load_cert_chain(pair)


def _require_library(method: str, file: Path) -> None:
    from importlib.util import find_spec

    if find_spec("kubernetes") is None:
        problem = f"the user's '{method}' needs the Python module kubernetes"
        remedy = "pip install 'poolwise[kubernetes-login]'"
        raise InputError(problem, file=file, field=f"users.user.{method}", remedy=remedy)
