"""Web application of `poolwise serve`: pages that show a folder, and requests that run commands of Poolwise."""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
import tempfile
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from aiohttp import web
from jinja2 import Environment, PackageLoader, StrictUndefined

from poolwise import catalog, registry
from poolwise.errors import InputError, PoolwiseError
from poolwise.hashing import canonical, digest
from poolwise.report.chart_parts import style_sheet
from poolwise.serve.auth import add_security_headers, guard
from poolwise.serve.command import ASK, Commands
from poolwise.serve.folder import StudyFolder

FILES = Path(__file__).parent / "templates"
NUMBER = "number:"
"""Prefix of form fields with a number; the rest is its path in the study."""
_DECIMAL = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?")


def make_app(root: Path, token: str) -> web.Application:
    """Return the application that serves a folder to holders of a token; raises InputError if the path is not a folder."""
    if not root.is_dir():
        raise InputError("not a folder", file=root, remedy="give the folder with studies and results")
    app = web.Application(middlewares=[guard(token), _report_errors])
    app.on_response_prepare.append(add_security_headers)
    site = _Site(StudyFolder(root))
    app.on_startup.append(site.start)
    app.on_cleanup.append(site.stop)
    app.add_routes([
        web.get("/", site.index),
        web.get("/serve.css", site.css),
        web.get("/serve.js", site.script),
        web.get("/report/{name:.+}", site.report),
        web.get("/answered/{name:\\w+}", site.answered),
        web.get("/command/{number:\\d+}", site.command),
        web.get("/runs", site.runs),
        web.post("/ask", site.ask),
        web.post("/keep", site.keep),
        web.post("/remove", site.remove),
        web.post("/explain", site.explain),
        web.post("/compare", site.compare),
        web.post("/forecast", site.forecast),
    ])  # fmt: skip
    return app


@web.middleware
async def _report_errors(request: web.Request, handler: Any) -> web.StreamResponse:
    """Answer an invalid request with the error that the command line would print."""
    try:
        response: web.StreamResponse = await handler(request)
    except PoolwiseError as problem:
        raise web.HTTPBadRequest(text=str(problem)) from problem
    return response


class _Site:
    """Request handlers."""

    def __init__(self, folder: StudyFolder) -> None:
        self.folder = folder
        self.pages = Environment(loader=PackageLoader("poolwise.serve"), autoescape=True, undefined=StrictUndefined)

    async def start(self, app: web.Application) -> None:
        self.commands = Commands(self.folder.root)
        await self.commands.open()
        self.reports = tempfile.TemporaryDirectory(prefix="poolwise-")

    async def stop(self, app: web.Application) -> None:
        await self.commands.close()
        self.reports.cleanup()

    async def index(self, request: web.Request) -> web.Response:
        results, studies, states = await asyncio.gather(
            asyncio.to_thread(self.folder.results),
            asyncio.to_thread(self.folder.studies),
            asyncio.to_thread(self.folder.states),
        )
        titles, name = Counter(study.title for study in studies), self.folder.root.name
        text = self.pages.get_template("index.html.j2").render(
            title=studies[0].title if len(studies) == 1 else name, out=shlex.quote(f"{name}/NAME"), titles=titles,
            results=results, studies=studies, states=states, machines=_machines(), orders=registry.names("orders"),
        )  # fmt: skip
        return web.Response(text=text, content_type="text/html")

    async def css(self, request: web.Request) -> web.Response:
        return web.Response(text=style_sheet() + (FILES / "serve.css").read_text(encoding="utf-8"), content_type="text/css")

    async def script(self, request: web.Request) -> web.Response:
        return web.Response(text=(FILES / "serve.js").read_text(encoding="utf-8"), content_type="text/javascript")

    async def report(self, request: web.Request) -> web.StreamResponse:
        path = self.folder.inside(request.match_info["name"]) / "report.html"
        return self._html(self.folder.inside(str(path.relative_to(self.folder.root))))

    async def answered(self, request: web.Request) -> web.StreamResponse:
        return self._html(Path(self.reports.name) / f"{request.match_info['name']}.html")

    def _html(self, path: Path) -> web.StreamResponse:
        if not path.is_file():
            raise web.HTTPNotFound(text="Report not found.")
        return web.FileResponse(path, headers={"Content-Type": "text/html; charset=utf-8", "X-Poolwise-Report": "yes"})

    async def command(self, request: web.Request) -> web.Response:
        started = self.commands.find(int(request.match_info["number"]))
        if started is None:
            raise web.HTTPNotFound(text="Command not found.")
        return web.json_response(started.to_dict())

    async def ask(self, request: web.Request) -> web.Response:
        form = await request.post()
        file = self.folder.inside(_text(form, "study"))
        settings = []
        for name, choices in (("machine", _machines()), ("scheduler.order", registry.names("orders"))):
            value = str(form.get(name, ""))
            if value and value not in choices:
                raise InputError(f"unknown {name} '{value}'", field=name, remedy=f"choose one of {', '.join(choices)}")
            if value:
                settings.append(f"{name}={'catalog:' if name == 'machine' else ''}{value}")
        if form.get("size_path"):
            size = _text(form, "size")
            if not size.isdecimal() or not 0 < int(size) < 10**7:
                raise InputError(f"'{size}' is not a size in GiB", field="size", remedy="give a whole number")
            settings.append(f"{_path(_text(form, 'size_path'))}={size} GiB")
        for field in form:
            if field.startswith(NUMBER) and (value := str(form[field]).strip()):
                if not _DECIMAL.fullmatch(value):
                    raise InputError(f"'{value}' is not a number", field=field, remedy="write a number such as 60 or 0.5")
                settings.append(f"{_path(field.removeprefix(NUMBER))}={value}")
        return self._started([ASK, str(file), *settings])

    async def runs(self, request: web.Request) -> web.Response:
        return web.json_response([asdict(result) for result in await asyncio.to_thread(self.folder.results)])

    async def keep(self, request: web.Request) -> web.Response:
        """Name and tag a run that was requested in the browser."""
        form = await request.post()
        folder, run = self.folder.asked(_text(form, "results"))
        replace(run, name=_text(form, "name"), tags=str(form.get("tags", ""))).write(folder)
        return web.json_response({})

    async def remove(self, request: web.Request) -> web.Response:
        """Remove a run that was requested in the browser."""
        form = await request.post()
        folder, _ = self.folder.asked(_text(form, "results"))
        await asyncio.to_thread(shutil.rmtree, folder)
        return web.json_response({})

    async def explain(self, request: web.Request) -> web.Response:
        form = await request.post()
        job = _text(form, "job")
        if not job.isdecimal():
            raise InputError(f"'{job}' is not a job id", field="job", remedy="give a whole number, as in the trace")
        results, _, key = _text(form, "run").rpartition(":")
        run = [str(self.folder.inside(results)), job, "--cell", _key(key)]
        return self._started(["explain", "run", *run, "--json"], report=True)

    async def compare(self, request: web.Request) -> web.Response:
        form = await request.post()
        chosen = [str(run).rpartition(":") for run in form.getall("run", ())]
        if len(chosen) < 2:
            raise InputError("a comparison needs two runs", field="run", remedy="select at least two runs")
        runs = [f"{self.folder.inside(results)}:{_key(key)}" for results, _, key in chosen]
        return self._started(["compare", *runs, "--json"], report=True)

    async def forecast(self, request: web.Request) -> web.Response:
        form = await request.post()
        state = self.folder.inside(_text(form, "state"))
        options = [f"--{name}={value}" for name in ("job", "new", "by") if (value := str(form.get(name, "")).strip())]
        return self._started(["forecast", "state", str(state), "--json", *options], report=True)

    def _started(self, arguments: list[str], report: bool = False) -> web.Response:
        """Start a command; return its number and, if it writes a report, the address of the report."""
        page = ""
        if report:
            name = digest(canonical(arguments))[:16]
            arguments = [*arguments, "--report", str(Path(self.reports.name) / f"{name}.html")]
            page = f"/answered/{name}"
        return web.json_response({"command": self.commands.start(arguments), "page": page})


def _text(form: Any, name: str) -> str:
    value = form.get(name)
    if not isinstance(value, str) or not value:
        raise InputError("the field is empty", field=name, remedy="fill it in")
    return value


def _key(text: str) -> str:
    if not text.isalnum():
        raise InputError(f"'{text}' is not a valid key of a run", field="run", remedy="choose from the list")
    return text


def _path(text: str) -> str:
    if not all(part.replace("_", "").replace("-", "").isalnum() for part in text.split(".")):
        raise InputError(f"'{text}' is not a valid path in a study", field="size_path", remedy="choose from the list")
    return text


def _machines() -> list[str]:
    return [name for name, _ in catalog.shipped("machines")]
