"""The graph on the page on flow placement matches the graph of the first phase."""

import re
from pathlib import Path

import numpy as np

from poolwise.files.machine import load_machine
from poolwise.model import Queue, Snapshot, Workload
from poolwise.model.run_table import RunTable
from poolwise.performance.ideal import Ideal
from poolwise.schedulers.flow import FlowScheduler
from poolwise.schedulers.flow.graph import MERMAID
from poolwise.schedulers.flow.node_phase import node_graph, place_on_nodes

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "flow-placement.md"
KINDS = ["nw", "srad", "hotspot"]


def test_graph_on_page_matches_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    for title, text in re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```', page, re.MULTILINE | re.DOTALL):
        Path(title).write_text(text, encoding="utf-8")
    machine = load_machine("two-servers.toml")
    requests = {"cores": np.full(3, 20), "gpu": np.ones(3, dtype=np.int64)}
    table = Workload.of(["0 s"] * 3, "1 min", requests=requests, attributes={"kind": np.array(KINDS)}).table
    rows = np.arange(3)
    free = machine.capacity
    snapshot = Snapshot(0, machine, table, free, free, RunTable(free.size), Ideal())
    state = FlowScheduler().open(machine, seed=0).state(Queue.of(table, rows), snapshot)

    built = node_graph(state, rows, state.free[:2].copy())
    names = [KINDS[int(np.flatnonzero(built.group == g)[0])] for g in range(3)]
    classes = [f"X_{state.shapes.kind[shape]}" for shape in built.shapes]
    places = [machine.owners[int(np.flatnonzero(built.place_of == p)[0])].split(".")[1] for p in range(2)]
    lines = built.graph.lines(names, classes, [*places, *(f"{place}_with_gpu" for place in places)], MERMAID)
    drawn = re.search(r"^```mermaid\nflowchart LR\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert drawn is not None
    assert drawn[1].splitlines() == "\n".join(lines).splitlines()
    assert place_on_nodes(state, rows).tolist() == [0, 1, 0], "nw and hotspot go to the first server, which has one GPU"
