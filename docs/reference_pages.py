"""Generate the reference from the API while the site is built (`make docs`), so that it cannot name what does not exist.

There is one page for the names of `import poolwise`, one for the interfaces, one for the model, and one for each registered
group with the names that study files and the command line use.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from inspect import isclass, isfunction

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import poolwise
from poolwise import interfaces, registry

GROUP_TITLES = {
    "orders": "Queue orders",
    "backfills": "Backfilling",
    "placements": "Placement",
    "admissions": "Admission",
    "preemptions": "Preemption",
    "models": "Performance models",
    "schedulers": "Schedulers",
    "formats": "Trace formats",
    "generators": "Workload generators",
    "memory_uses": "Memory over time",
    "machine_formats": "Machine formats",
    "affinities": "Affinities from measurements",
    "plots": "Plots of a run",
    "reproductions": "Reproductions",
}
"""Title of the page of a group, where the name of the group alone would not do."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages (called by MkDocs)."""
    for name, text in pages():
        files.append(File.generated(config, f"reference/api/{name}.md", content=text))
    return files


def pages() -> Iterator[tuple[str, str]]:
    """Yield (name, Markdown) of every page; a name of several pages is described on one and linked from the others."""
    model = import_module("poolwise.model")
    homes = {"model": [getattr(model, name) for name in model.__all__]}
    homes |= {group: [registry.find(group, name) for name in registry.names(group)] for group in registry.GROUPS}
    known = {_path(thing) for things in homes.values() for thing in things}
    yield "model", _page("Model", [f"::: {path}" for path in sorted({_path(thing) for thing in homes.pop("model")} - {""})])
    for group, things in homes.items():
        blocks = [_named(name, thing) for name, thing in zip(registry.names(group), things, strict=True)]
        first = [_metrics()] if group == "metrics" else []
        yield group, _page(GROUP_TITLES.get(group, group.capitalize()), [*first, *blocks])
    public = {name: _path(getattr(poolwise, name)) for name in poolwise.__all__}
    paths = {_path(getattr(interfaces, name)) for name in interfaces.__all__} - {"", *known, *public.values()}
    yield "interfaces", _page("Interfaces", [f"::: {path}" for path in sorted(paths)])
    links = [f"- [`poolwise.{name}`][{path}]" for name, path in public.items() if path]
    links.append("- `poolwise.METRICS`: [every metric](metrics.md)")
    links.append("- `poolwise.interfaces`: [interfaces](interfaces.md), with the data classes that they use")
    groups = ("orders", "backfills", "placements", "admissions", "preemptions", "costs")
    policy_pages = ", ".join(f"[{GROUP_TITLES.get(group, group.capitalize()).lower()}]({group}.md)" for group in groups)
    links.append(f"- `poolwise.policies`: the shipped classes by name: {policy_pages}")
    links.append("- `poolwise.schedulers`: [schedulers](schedulers.md) by name")
    links.append("- `poolwise.performance`: [performance models](models.md) by name")
    links.append("- `poolwise.conformance`: the checks behind `poolwise.check`, and a fake cluster with faults for tests")
    here = [f"::: {path}" for path in public.values() if path and path not in known]
    yield "python", _page("Names of `import poolwise`", ["\n".join(links), *here])


def _metrics() -> str:
    """Return a table of the metrics of every measure, the standard ones first."""
    measures = [registry.find("metrics", name) for name in registry.names("metrics")]
    known = {name: m for metrics in (poolwise.METRICS, *(one.metrics for one in measures)) for name, m in metrics.items()}
    rows = [f"| `{name}` | {m.description} | {m.unit} | {m.better} |" for name, m in known.items()]
    return "\n".join(["| metric | description | unit | better |", "|---|---|---|---|", *rows])


def _page(title: str, blocks: list[str]) -> str:
    return "\n\n".join([f"# {title}", *blocks]) + "\n"


def _named(name: str, thing: object) -> str:
    return f"## `{name}`\n\n::: {_path(thing) or _path(type(thing))}\n    options:\n      heading_level: 3"


def _path(thing: object) -> str:
    """Return the dotted path of a class or function, "" for anything else."""
    return f"{thing.__module__}.{thing.__qualname__}" if isclass(thing) or isfunction(thing) else ""
