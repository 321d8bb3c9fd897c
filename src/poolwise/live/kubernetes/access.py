"""Address and credentials of an API server, from a kubeconfig file or from inside the cluster."""

from __future__ import annotations

import base64
import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from poolwise.errors import InputError
from poolwise.live.kubernetes.login import Login, exec_login, load_pair, oidc_login

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True)
class Access:
    """Address, trust and credentials for an API server.

    Attributes
    ----------
    server : URL
    tls : context that verifies the server; None for plain HTTP on this host, such as a proxy in tests
    token : bearer token, unless `token_file` is set
    token_file : file with the bearer token, read for each request because the token expires
    login : source of credentials that are renewed, such as an exec plugin; None for the credentials above
    namespace : default namespace of this client
    """

    server: str
    tls: ssl.SSLContext | None
    token: str = ""
    token_file: Path | None = None
    login: Login | None = None
    namespace: str = "default"

    @classmethod
    def discover(cls, kubeconfig: Path | None = None) -> Access:
        """Use the given file, else $KUBECONFIG, else the cluster that this process runs in, else ~/.kube/config."""
        if kubeconfig is None and (named := os.environ.get("KUBECONFIG")):
            kubeconfig = Path(named.split(os.pathsep)[0])
        if kubeconfig is None and os.environ.get("KUBERNETES_SERVICE_HOST"):
            return cls.in_cluster()
        return cls.from_kubeconfig(kubeconfig or Path.home() / ".kube" / "config")

    @classmethod
    def in_cluster(cls) -> Access:
        """Use the service account of the pod that this process runs in."""
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        tls = ssl.create_default_context(cafile=str(_SERVICE_ACCOUNT / "ca.crt"))
        namespace = (_SERVICE_ACCOUNT / "namespace").read_text().strip()
        address = f"[{host}]" if ":" in host else host
        return cls(f"https://{address}:{port}", tls, token_file=_SERVICE_ACCOUNT / "token", namespace=namespace)

    @classmethod
    def from_kubeconfig(cls, file: Path) -> Access:
        """Read the current context of a kubeconfig file; raise InputError if it is missing, incomplete or unsupported."""
        if not file.is_file():
            raise InputError("file does not exist", file=file, field="--kubeconfig", remedy="name the cluster's kubeconfig")
        try:
            content = yaml.safe_load(file.read_text())
            context = _find(content, "contexts", content["current-context"])["context"]
            cluster = _find(content, "clusters", context["cluster"])["cluster"]
            user = _find(content, "users", context["user"])["user"]
            server = cluster["server"]
        except (yaml.YAMLError, KeyError, TypeError, StopIteration) as error:
            raise InputError(
                f"not a kubeconfig with a current context, its cluster and its user ({error})",
                file=file,
                field="current-context",
                remedy="compare with `kubectl config view`",
            ) from None
        if "username" in user:
            raise InputError(
                "the user's 'username' is not supported",
                file=file,
                field="users.user.username",
                remedy="use a token, a client certificate, an exec plugin or an OIDC provider",
            )
        token_file, tls = user.get("tokenFile"), _tls(cluster, user, file)
        login = (
            exec_login(user["exec"], cluster, tls, file)
            if "exec" in user
            else oidc_login(user["auth-provider"], file)
            if "auth-provider" in user
            else None
        )
        return cls(
            server.rstrip("/"),
            tls,
            token=user.get("token", ""),
            token_file=file.parent / token_file if token_file else None,
            login=login,
            namespace=context.get("namespace", "default"),
        )

    async def bearer_token(self) -> str:
        """Return the current bearer token, "" if there is none; raise InputError if it expired and cannot be renewed."""
        if self.login is not None:
            return await self.login.bearer_token()
        return self.token if self.token_file is None else self.token_file.read_text().strip()

    def reject(self, token: str) -> bool:
        """Report that the server rejected a token; return whether the next one may differ."""
        if self.login is not None:
            self.login.reject(token)
        return self.login is not None


def _find(content: Any, group: str, name: str) -> Any:
    return next(item for item in content[group] if item["name"] == name)


def _tls(cluster: Any, user: Any, file: Path) -> ssl.SSLContext | None:
    if not cluster["server"].startswith("https:"):
        return None
    if cluster.get("insecure-skip-tls-verify"):
        raise InputError(
            "insecure-skip-tls-verify is not supported",
            file=file,
            field="clusters.cluster.insecure-skip-tls-verify",
            remedy="set certificate-authority or certificate-authority-data instead",
        )
    data, path = cluster.get("certificate-authority-data"), cluster.get("certificate-authority")
    tls = ssl.create_default_context(
        cafile=str(file.parent / path) if path else None, cadata=base64.b64decode(data).decode() if data else None
    )
    certificate, key = user.get("client-certificate"), user.get("client-key")
    if certificate and key:
        tls.load_cert_chain(file.parent / certificate, file.parent / key)
    elif user.get("client-certificate-data") and user.get("client-key-data"):
        load_pair(tls, *(base64.b64decode(user[name]) for name in ("client-certificate-data", "client-key-data")))
    return tls
