"""Credentials of kubeconfig files: static ones, exec plugins and OpenID Connect, against a real HTTPS server."""

import asyncio
import base64
import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from poolwise.errors import InputError
from poolwise.live.kubernetes.access import Access
from poolwise.live.kubernetes.client import ApiError, Client
from tests.helpers.https_server import TLS, Request, https_server, proxy_server

CA = {"certificate-authority": str(TLS / "ca.pem")}


def kubeconfig(folder: Path, server: str, user: dict[str, Any], cluster: dict[str, Any] = CA) -> Path:
    file = folder / "kubeconfig"
    content = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "work"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    file.write_text(yaml.safe_dump(content))
    return file


class ApiServer:
    """Accepts some tokens and the test client's certificate; records who asked."""

    def __init__(self, *tokens: str) -> None:
        self.tokens, self.callers = {*tokens}, list[str]()

    def __call__(self, request: Request) -> tuple[int, Any]:
        caller = request.certificate or request.authorization.removeprefix("Bearer ")
        self.callers.append(caller)
        if caller not in {"client", *self.tokens}:
            return 401, {"reason": "Unauthorized", "message": "Unauthorized"}
        return 200, {"caller": caller}


def ask(access: Access, times: int = 1) -> list[str]:
    async def send() -> list[str]:
        client = Client(access)
        try:
            return [json.loads(await client.get("/version"))["caller"] for _ in range(times)]
        finally:
            await client.close()

    return asyncio.run(send())


def plugin(folder: Path, code: str) -> dict[str, Any]:
    """Return the exec section of a plugin; it counts its runs in `runs`, and `status` is what it returns."""
    script = folder / "plugin.py"
    script.write_text(
        "import json, os, pathlib, sys, time\n"
        f"runs = pathlib.Path({str(folder / 'runs')!r})\n"
        "run = len(runs.read_text()) if runs.exists() else 0\n"
        "runs.write_text('.' * (run + 1))\n"
        "def at(seconds): return time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(time.time() + seconds))\n"
        f"{code}\n"
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "print(json.dumps({'apiVersion': info['apiVersion'], 'kind': 'ExecCredential', 'status': status}))\n"
    )
    command = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": [str(script)]}
    return {"exec": {**command, "env": [{"name": "REGION", "value": "north"}], "installHint": "install the plugin"}}


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text())


def test_token_and_namespace(tmp_path: Path) -> None:
    with https_server(ApiServer("secret")) as url:
        access = Access.from_kubeconfig(kubeconfig(tmp_path, url, {"token": "secret"}))
        assert access.namespace == "work"
        assert ask(access) == ["secret"]


def test_token_file_is_read_for_each_request(tmp_path: Path) -> None:
    with https_server(ApiServer("first", "second")) as url:
        access = Access.from_kubeconfig(kubeconfig(tmp_path, url, {"tokenFile": "token"}))
        for token in ("first", "second"):
            (tmp_path / "token").write_text(f"{token}\n")
            assert ask(access) == [token]


@pytest.mark.parametrize("as_data", [False, True])
def test_client_certificate(tmp_path: Path, as_data: bool) -> None:
    user: dict[str, Any] = {"client-certificate": str(TLS / "client.pem"), "client-key": str(TLS / "client.key")}
    cluster: dict[str, Any] = CA
    if as_data:
        user = {f"{name}-data": base64.b64encode(Path(file).read_bytes()).decode() for name, file in user.items()}
        cluster = {"certificate-authority-data": base64.b64encode((TLS / "ca.pem").read_bytes()).decode()}
    with https_server(ApiServer()) as url:
        assert ask(Access.from_kubeconfig(kubeconfig(tmp_path, url, user, cluster))) == ["client"]


def test_server_of_another_authority_is_refused(tmp_path: Path) -> None:
    with https_server(ApiServer("secret")) as url, pytest.raises(ApiError, match="certificate"):
        ask(Access.from_kubeconfig(kubeconfig(tmp_path, url, {"token": "secret"}, {})))


def test_plugin_runs_once_for_a_valid_token(tmp_path: Path) -> None:
    user = plugin(tmp_path, "status = {'token': os.environ['REGION'], 'expirationTimestamp': at(3600)}")
    with https_server(ApiServer("north")) as url:
        access = Access.from_kubeconfig(kubeconfig(tmp_path, url, user))
        assert ask(access, 3) == ["north"] * 3
    assert runs(tmp_path) == 1


def test_plugin_renews_a_token_before_it_expires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = plugin(tmp_path, "status = {'token': f'token-{run}', 'expirationTimestamp': at(3600)}")
    with https_server(ApiServer("token-0", "token-1")) as url:
        access = Access.from_kubeconfig(kubeconfig(tmp_path, url, user))
        assert ask(access, 2) == ["token-0"] * 2
        now = time.time()
        monkeypatch.setattr("poolwise.live.kubernetes.login.time.time", lambda: now + 3550)
        assert ask(access, 2) == ["token-1"] * 2


def test_plugin_runs_again_for_a_rejected_token(tmp_path: Path) -> None:
    server = ApiServer("token-1")
    with https_server(server) as url:
        access = Access.from_kubeconfig(kubeconfig(tmp_path, url, plugin(tmp_path, "status = {'token': f'token-{run}'}")))
        assert ask(access, 2) == ["token-1"] * 2
    assert server.callers == ["token-0", "token-1", "token-1"]


def test_watch_renews_a_rejected_token_when_it_is_reopened(tmp_path: Path) -> None:
    async def watch(access: Access) -> list[bytes]:
        client = Client(access)
        try:
            return [line async for line in client.lines("/version", {}, 5.0)]
        finally:
            await client.close()

    with https_server(ApiServer("token-1")) as url:
        access = Access.from_kubeconfig(kubeconfig(tmp_path, url, plugin(tmp_path, "status = {'token': f'token-{run}'}")))
        with pytest.raises(ApiError, match="401"):
            asyncio.run(watch(access))
        assert asyncio.run(watch(access)) == []  # one incomplete line
    assert runs(tmp_path) == 2


def test_failed_renewal_is_an_error_only_after_the_expiry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "if run: sys.exit('not logged in')\nstatus = {'token': 'early', 'expirationTimestamp': at(3600)}"
    with https_server(ApiServer("early")) as url:
        access = Access.from_kubeconfig(kubeconfig(tmp_path, url, plugin(tmp_path, code)))
        now = time.time()
        monkeypatch.setattr("poolwise.live.kubernetes.login.time.time", lambda: now + 3550)
        assert ask(access, 2) == ["early"] * 2
        assert runs(tmp_path) == 2
        monkeypatch.setattr("poolwise.live.kubernetes.login.time.time", lambda: now + 3700)
        with pytest.raises(ApiError, match="not logged in") as caught:
            ask(access)
        assert caught.value.is_temporary


def test_plugin_returns_a_client_certificate(tmp_path: Path) -> None:
    pair = {"clientCertificateData": "client.pem", "clientKeyData": "client.key"}
    user = plugin(tmp_path, f"status = { ({name: (TLS / file).read_text() for name, file in pair.items()})!r}")
    with https_server(ApiServer()) as url:
        assert ask(Access.from_kubeconfig(kubeconfig(tmp_path, url, user))) == ["client"]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("sys.exit('not logged in')", "not logged in"),
        ("print('hello'); status = {}", "decode"),
        ("status = {}", "neither a token nor a client certificate"),
    ],
)
def test_failing_plugin_is_reported_with_its_file(tmp_path: Path, code: str, reason: str) -> None:
    file = kubeconfig(tmp_path, "https://127.0.0.1:1", plugin(tmp_path, code))
    with pytest.raises(InputError, match=reason) as caught:
        Access.from_kubeconfig(file)
    assert (caught.value.file, caught.value.field) == (file, "users.user.exec")
    assert caught.value.remedy == "install the plugin"


def jwt(name: str, lifetime: float) -> str:
    def part(content: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part({'sub': name, 'exp': int(time.time() + lifetime)})}.c2lnbmF0dXJl"


def oidc(issuer: str, token: str) -> dict[str, Any]:
    config = {"idp-issuer-url": issuer, "client-id": "poolwise", "client-secret": "s3cret", "refresh-token": "refresh-0"}
    authority = {"idp-certificate-authority": str(TLS / "ca.pem")}
    return {"auth-provider": {"name": "oidc", "config": {**config, **authority, "id-token": token}}}


class Issuer:
    """An OpenID Connect issuer that exchanges each refresh token once."""

    def __init__(self, *tokens: str) -> None:
        self.tokens, self.url = list(tokens), ""

    def __call__(self, request: Request) -> tuple[int, Any]:
        if request.path == "/.well-known/openid-configuration":
            return 200, {"issuer": self.url, "token_endpoint": f"{self.url}/token"}
        if not self.tokens or "refresh_token=refresh-" not in request.body:
            return 400, {"error": "invalid_grant"}
        answer = {"access_token": "unused", "token_type": "Bearer", "refresh_token": "refresh-1"}
        return 200, {**answer, "id_token": self.tokens.pop(0)}


def test_valid_oidc_token_needs_no_issuer(tmp_path: Path) -> None:
    token = jwt("ada", 3600)
    with https_server(ApiServer(token)) as url:
        access = Access.from_kubeconfig(kubeconfig(tmp_path, url, oidc("https://127.0.0.1:1", token)))
        assert ask(access, 2) == [token] * 2


def test_expired_oidc_token_is_refreshed_and_saved(tmp_path: Path) -> None:
    new = jwt("ada", 3600)
    issuer = Issuer(new)
    with https_server(ApiServer(new)) as url, https_server(issuer) as issuer.url:
        file = kubeconfig(tmp_path, url, oidc(issuer.url, jwt("ada", -10)))
        assert ask(Access.from_kubeconfig(file), 2) == [new] * 2
    saved = yaml.safe_load(file.read_text())["users"][0]["user"]["auth-provider"]["config"]
    assert (saved["id-token"], saved["refresh-token"]) == (new, "refresh-1")


def test_oidc_token_is_refreshed_while_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = jwt("ada", 310), jwt("ada", 3600)
    issuer = Issuer(new)
    with https_server(ApiServer(old, new)) as url, https_server(issuer) as issuer.url:
        access = Access.from_kubeconfig(kubeconfig(tmp_path, url, oidc(issuer.url, old)))
        assert ask(access) == [old]
        now = time.time()
        monkeypatch.setattr("kubernetes.config.kube_config.EXPIRY_SKEW_PREVENTION_DELAY", timedelta(seconds=400))
        monkeypatch.setattr("poolwise.live.kubernetes.login.time.time", lambda: now + 260)
        assert ask(access) == [new]


def test_refused_refresh_is_reported_with_its_file(tmp_path: Path) -> None:
    issuer = Issuer()
    with https_server(issuer) as issuer.url:
        file = kubeconfig(tmp_path, "https://127.0.0.1:1", oidc(issuer.url, jwt("ada", -10)))
        with pytest.raises(InputError, match="invalid_grant") as caught:
            Access.from_kubeconfig(file)
    assert (caught.value.file, caught.value.field) == (file, "users.user.auth-provider")


@pytest.mark.parametrize(
    ("user", "field"),
    [
        ({"username": "ada", "password": "x"}, "username"),
        ({"auth-provider": {"name": "gcp"}}, "auth-provider.name"),
        ({"auth-provider": {"name": "oidc", "config": {}}}, "auth-provider.config.idp-certificate-authority"),
    ],
)
def test_unsupported_credentials_are_named(tmp_path: Path, user: dict[str, Any], field: str) -> None:
    file = kubeconfig(tmp_path, "https://127.0.0.1:1", user)
    with pytest.raises(InputError) as caught:
        Access.from_kubeconfig(file)
    assert (caught.value.file, caught.value.field) == (file, f"users.user.{field}")
    assert caught.value.remedy


def test_unverified_server_is_not_supported(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, "https://127.0.0.1:1", {"token": "x"}, {"insecure-skip-tls-verify": True})
    with pytest.raises(InputError, match="insecure-skip-tls-verify") as caught:
        Access.from_kubeconfig(file)
    assert caught.value.field == "clusters.cluster.insecure-skip-tls-verify"


def test_entries_of_several_files_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cluster").mkdir()
    (tmp_path / "user").mkdir()
    (tmp_path / "cluster" / "ca.pem").write_bytes((TLS / "ca.pem").read_bytes())
    (tmp_path / "user" / "token").write_text("secret\n")
    empty = tmp_path / "empty"
    empty.write_text("")
    with https_server(ApiServer("secret")) as url:
        first = kubeconfig(tmp_path / "cluster", url, {}, {"certificate-authority": "ca.pem"})
        content = yaml.safe_load(first.read_text())
        first.write_text(yaml.safe_dump({**content, "users": None}))
        second = kubeconfig(tmp_path / "user", "https://127.0.0.1:1", {"tokenFile": "token"})
        second.write_text(yaml.safe_dump({**yaml.safe_load(second.read_text()), "current-context": "elsewhere"}))
        paths = (tmp_path / "missing", empty, first, second)
        monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, paths)))
        assert ask(Access.discover()) == ["secret"]


def test_oidc_token_is_saved_to_the_file_of_its_user(tmp_path: Path) -> None:
    (tmp_path / "cluster").mkdir()
    new = jwt("ada", 3600)
    issuer = Issuer(new)
    with https_server(ApiServer(new)) as url, https_server(issuer) as issuer.url:
        user = kubeconfig(tmp_path, url, oidc(issuer.url, jwt("ada", -10)))
        content = yaml.safe_load(user.read_text())
        cluster = kubeconfig(tmp_path / "cluster", url, {})
        cluster.write_text(yaml.safe_dump({**yaml.safe_load(cluster.read_text()), "users": []}))
        user.write_text(yaml.safe_dump({"current-context": "elsewhere", "users": content["users"]}))
        assert ask(Access.from_kubeconfig(cluster, user), 2) == [new] * 2
    assert yaml.safe_load(user.read_text())["users"][0]["user"]["auth-provider"]["config"]["id-token"] == new


def test_server_is_verified_by_its_tls_server_name(tmp_path: Path) -> None:
    with https_server(ApiServer("secret")) as url:
        named = kubeconfig(tmp_path, url, {"token": "secret"}, {**CA, "tls-server-name": "localhost"})
        assert ask(Access.from_kubeconfig(named)) == ["secret"]
        other = kubeconfig(tmp_path, url, {"token": "secret"}, {**CA, "tls-server-name": "other.example"})
        with pytest.raises(ApiError, match=r"other\.example"):
            ask(Access.from_kubeconfig(other))


def test_requests_go_through_the_proxy(tmp_path: Path) -> None:
    with https_server(ApiServer("secret")) as url, proxy_server() as (proxy, targets):
        file = kubeconfig(tmp_path, url, {"token": "secret"}, {**CA, "proxy-url": proxy})
        assert ask(Access.from_kubeconfig(file), 2) == ["secret"] * 2
    assert set(targets) == {url.removeprefix("https://")}


def test_other_kinds_of_proxies_are_named(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, "https://127.0.0.1:1", {"token": "x"}, {"proxy-url": "socks5://127.0.0.1:1080"})
    with pytest.raises(InputError, match="socks5") as caught:
        Access.from_kubeconfig(file)
    assert (caught.value.file, caught.value.field) == (file, "clusters.cluster.proxy-url")


@pytest.mark.parametrize("text", ["", "a: [", "[]", "current-context: here\n"])
def test_incomplete_file_is_reported(tmp_path: Path, text: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    with pytest.raises(InputError, match="not a kubeconfig") as caught:
        Access.from_kubeconfig(file)
    assert (caught.value.file, caught.value.field) == (file, "current-context")


def test_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        Access.discover(tmp_path / "none")


def test_missing_library_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="kubernetes") as caught:
        Access.from_kubeconfig(kubeconfig(tmp_path, "https://127.0.0.1:1", plugin(tmp_path, "status = {}")))
    assert caught.value.remedy == "pip install 'poolwise[kubernetes-login]'"
