"""How to reach an API server: from a kubeconfig file, or from inside of the cluster."""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from poolwise.errors import InputError

_INSIDE = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True)
class Access:
    """Where an API server is, whom it trusts and who we are.

    Attributes
    ----------
    server : its address
    tls : verifies it; None for plain http on this machine, as a proxy in tests has it
    token : what names us, read anew from `token_file` where there is one, since it expires
    namespace : our own
    """

    server: str
    tls: ssl.SSLContext | None
    token: str = ""
    token_file: Path | None = None
    namespace: str = "default"

    @classmethod
    def found(cls, kubeconfig: Path | None = None) -> Access:
        """Take the file that is named, else $KUBECONFIG, else the cluster that we run in, else ~/.kube/config."""
        if kubeconfig is None and (named := os.environ.get("KUBECONFIG")):
            kubeconfig = Path(named.split(os.pathsep)[0])
        if kubeconfig is None and os.environ.get("KUBERNETES_SERVICE_HOST"):
            return cls.inside()
        return cls.of_file(kubeconfig or Path.home() / ".kube" / "config")

    @classmethod
    def inside(cls) -> Access:
        """Take the cluster that this process is a pod of."""
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        tls = ssl.create_default_context(cafile=str(_INSIDE / "ca.crt"))
        namespace = (_INSIDE / "namespace").read_text().strip()
        address = f"[{host}]" if ":" in host else host
        return cls(f"https://{address}:{port}", tls, token_file=_INSIDE / "token", namespace=namespace)

    @classmethod
    def of_file(cls, file: Path) -> Access:
        """Read a kubeconfig file's current context; raises InputError for one that cannot be used."""
        if not file.is_file():
            raise InputError("there is no such file", file=file, field="--kubeconfig", remedy="name the cluster's kubeconfig")
        try:
            content = yaml.safe_load(file.read_text())
            context = _named(content, "contexts", content["current-context"])["context"]
            cluster = _named(content, "clusters", context["cluster"])["cluster"]
            user = _named(content, "users", context["user"])["user"]
            server = cluster["server"]
        except (yaml.YAMLError, KeyError, TypeError, StopIteration) as error:
            raise InputError(
                f"this is no kubeconfig with a current context, its cluster and its user ({error})",
                file=file,
                field="current-context",
                remedy="compare with `kubectl config view`",
            ) from None
        if foreign := sorted({"exec", "auth-provider", "username"} & set(user)):
            raise InputError(
                f"the user's '{foreign[0]}' is not supported",
                file=file,
                field=f"users.user.{foreign[0]}",
                remedy="use a token or a client certificate, such as those of a service account",
            )
        token_file = user.get("tokenFile")
        return cls(
            server.rstrip("/"),
            _tls(cluster, user, file),
            token=user.get("token", ""),
            token_file=file.parent / token_file if token_file else None,
            namespace=context.get("namespace", "default"),
        )

    def bearer(self) -> str:
        """The token as it is now."""
        return self.token if self.token_file is None else self.token_file.read_text().strip()


def _named(content: Any, group: str, name: str) -> Any:
    return next(item for item in content[group] if item["name"] == name)


def _tls(cluster: Any, user: Any, file: Path) -> ssl.SSLContext | None:
    if not cluster["server"].startswith("https:"):
        return None
    if cluster.get("insecure-skip-tls-verify"):
        raise InputError(
            "an API server that is not verified is not talked to",
            file=file,
            field="clusters.cluster.insecure-skip-tls-verify",
            remedy="give its certificate authority",
        )
    data, path = cluster.get("certificate-authority-data"), cluster.get("certificate-authority")
    tls = ssl.create_default_context(
        cafile=str(file.parent / path) if path else None, cadata=base64.b64decode(data).decode() if data else None
    )
    certificate, key = user.get("client-certificate"), user.get("client-key")
    if certificate and key:
        tls.load_cert_chain(file.parent / certificate, file.parent / key)
    elif user.get("client-certificate-data") and user.get("client-key-data"):
        with tempfile.TemporaryDirectory() as folder:  # Python loads them from files only
            pair = Path(folder) / "pair.pem"
            pair.touch(mode=0o600)
            pair.write_bytes(
                b"\n".join(base64.b64decode(user[name]) for name in ("client-certificate-data", "client-key-data"))
            )
            tls.load_cert_chain(pair)
    return tls
