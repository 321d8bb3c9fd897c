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
    """Address, trust and credentials for an API server."""

    server: str  # URL
    tls: ssl.SSLContext | None  # context that verifies the server; None for plain HTTP on this host, such as a proxy in tests
    token: str = ""  # bearer token, unless `token_file` is set
    token_file: Path | None = None  # file with the bearer token, read for each request because the token expires
    login: Login | None = None  # source of credentials that are renewed, such as an exec plugin; None for the credentials above
    namespace: str = "default"  # default namespace of this client
    server_name: str | None = None  # name in the server's certificate, None for the host of its URL
    proxy: str | None = None  # URL of an HTTP proxy

    @classmethod
    def discover(cls, kubeconfig: Path | None = None) -> Access:
        """Use the given file, else those in $KUBECONFIG, else the cluster of this process, else ~/.kube/config."""
        if kubeconfig is not None:
            return cls.from_kubeconfig(kubeconfig)
        if named := [Path(name) for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]:
            return cls.from_kubeconfig(*named)
        if os.environ.get("KUBERNETES_SERVICE_HOST"):
            return cls.in_cluster()
        return cls.from_kubeconfig(Path.home() / ".kube" / "config")

    @classmethod
    def in_cluster(cls) -> Access:
        """Use the service account of the pod that this process runs in."""
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        tls = ssl.create_default_context(cafile=str(_SERVICE_ACCOUNT / "ca.crt"))
        namespace = (_SERVICE_ACCOUNT / "namespace").read_text().strip()
        address = f"[{host}]" if ":" in host else host
        return cls(f"https://{address}:{port}", tls, token_file=_SERVICE_ACCOUNT / "token", namespace=namespace)

    @classmethod
    def from_kubeconfig(cls, *files: Path) -> Access:
        """Read the current context of kubeconfig files; as in kubectl, the first file that has an entry wins.

        Missing files are skipped if another exists. Raises InputError if none exists, or for incomplete or unsupported content.
        """
        present = [file for file in files if file.is_file()]
        if not present:
            raise InputError(
                "file does not exist", file=files[0], field="--kubeconfig", remedy="give the path of the cluster's kubeconfig"
            )
        try:
            contents = [(file, yaml.safe_load(file.read_text()) or {}) for file in present]
            current = next(content["current-context"] for _, content in contents if content.get("current-context"))
            _, context = _find(contents, "contexts", current)
            at, cluster = _find(contents, "clusters", context["cluster"])
            file, user = _find(contents, "users", context["user"])
            server = cluster["server"]
        except (yaml.YAMLError, AttributeError, KeyError, TypeError, StopIteration) as error:
            problem = f"not a kubeconfig with a current context, its cluster and its user ({error})"
            remedy = "compare with `kubectl config view`"
            raise InputError(problem, file=present[0], field="current-context", remedy=remedy) from None
        if "username" in user:
            remedy = "use a token, a client certificate, an exec plugin or an OIDC provider"
            raise InputError("the user's 'username' is not supported", file=file, field="users.user.username", remedy=remedy)
        tls, login = _tls(cluster, at, user, file), None
        if "exec" in user:
            login = exec_login(user["exec"], cluster, tls, file)
        elif "auth-provider" in user:
            login = oidc_login(user["auth-provider"], file, [path for path, content in contents if content], current)
        return cls(
            server.rstrip("/"),
            tls,
            token=user.get("token", ""),
            token_file=file.parent / user["tokenFile"] if user.get("tokenFile") else None,
            login=login,
            namespace=context.get("namespace", "default"),
            server_name=cluster.get("tls-server-name"),
            proxy=_proxy(cluster, at),
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


def _find(contents: list[tuple[Path, Any]], group: str, name: str) -> tuple[Path, Any]:
    """Return the first entry of a group with a name, and the file that its relative paths refer to."""
    items = ((file, item) for file, content in contents for item in content.get(group) or ())
    return next((file, item[group.removesuffix("s")]) for file, item in items if item["name"] == name)


def _proxy(cluster: Any, file: Path) -> str | None:
    proxy: str | None = cluster.get("proxy-url")
    if proxy and not proxy.startswith(("http://", "https://")):
        field, remedy = "clusters.cluster.proxy-url", "use an HTTP proxy"
        raise InputError(f"the proxy '{proxy}' is not supported", file=file, field=field, remedy=remedy)
    return proxy or None


def _tls(cluster: Any, at: Path, user: Any, file: Path) -> ssl.SSLContext | None:
    """Return the TLS context of a cluster and a user defined in the files `at` and `file`; None for a server without TLS."""
    if not cluster["server"].startswith("https:"):
        return None
    if cluster.get("insecure-skip-tls-verify"):
        problem = "insecure-skip-tls-verify is not supported"
        remedy = "set certificate-authority or certificate-authority-data instead"
        raise InputError(problem, file=at, field="clusters.cluster.insecure-skip-tls-verify", remedy=remedy)
    data, path = cluster.get("certificate-authority-data"), cluster.get("certificate-authority")
    tls = ssl.create_default_context(
        cafile=str(at.parent / path) if path else None, cadata=base64.b64decode(data).decode() if data else None
    )
    certificate, key = user.get("client-certificate"), user.get("client-key")
    if certificate and key:
        tls.load_cert_chain(file.parent / certificate, file.parent / key)
    elif user.get("client-certificate-data") and user.get("client-key-data"):
        load_pair(tls, *(base64.b64decode(user[name]) for name in ("client-certificate-data", "client-key-data")))
    return tls
