"""Undamaged inputs of the fuzzer: the first rows of real logs, and the machines to read them for."""

from __future__ import annotations

import gzip
import io
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from poolwise import catalog
from poolwise.model import Machine
from poolwise.traces import vinesim
from tests.helpers.data import DATA, LOGS
from tests.helpers.measured_units import machine as units
from tests.helpers.shared_nodes import shared_nodes

ROWS = 8


@dataclass(frozen=True)
class Original:
    """An undamaged file: its name, its content, machines to read it for, and options to choose from."""

    name: str
    content: bytes
    machines: tuple[Machine, ...]
    options: tuple[Mapping[str, object], ...] = ({},)


WHOLE = Machine.of_racks(2, 16, local=65536, pool=2**20, cores=32)
SHARED = shared_nodes(cores=64, gpu=8, memory=2**20)
NODES = (WHOLE, SHARED, Machine.flat(64))


def originals() -> dict[str, tuple[Original, ...]]:
    """Return format -> undamaged inputs."""
    return {name: make() for name, make in MAKERS.items()}


def _first(path: object, rows: int = ROWS, comment: str = ";") -> bytes:
    data = path.read_bytes()  # type: ignore[attr-defined]
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
    lines = text.splitlines()
    head = [line for line in lines if line.startswith(comment)][:3]
    return ("\n".join([*head, *[line for line in lines if not line.startswith(comment)][: rows + 1]]) + "\n").encode()


def _swf() -> tuple[Original, ...]:
    more = ({}, {"memory_unknown": "4 GiB", "memory_field": "requested"}, {"memory_scale": 0.5}, {"memory_unknown": "exclude"})
    logs = [Original("log.swf", _first(LOGS / name), (WHOLE, Machine.flat(64)), more) for name in _LOGS]
    return (*logs, Original("log.swf.gz", gzip.compress(logs[0].content, mtime=0), (WHOLE,), more))


_LOGS = ("hpc2n-2002.swf.gz", "nasa-ipsc-1993.swf.gz", "unilu-gaia-2014.swf.gz")

_DERIVED = """JobID|User|Account|QOS|Partition|Submit|Start|End|State|NNodes|NCPUS|Elapsed|Timelimit|ReqMem
17|ada|phys|normal|batch|2026-03-01T00:00:00|2026-03-01T00:01:00|2026-03-01T01:01:00|COMPLETED|2|64|01:00:00|1-00:00:00|4Gn
17.batch||||||2026-03-01T00:01:00|2026-03-01T01:01:00|COMPLETED|1|32|01:00:00||
18_4|bob|chem|debug|batch|2026-03-01T00:00:05|2026-03-01T00:02:00|2026-03-01T00:12:00|TIMEOUT|1|8|00:10:00|00:10:00|8G
18_[5-9]|bob|chem|debug|batch|2026-03-01T00:00:05|Unknown|Unknown|PENDING|1|8|00:00:00|00:10:00|8G
19|eve|chem|debug|gpu|2026-03-01T00:00:07|2026-03-01T00:02:00|2026-03-01T00:02:30|REQUEUED|1|8|00:00:30|UNLIMITED|100Mc
19|eve|chem|debug|gpu|2026-03-01T00:02:30|2026-03-01T00:05:00|2026-03-01T00:15:00|COMPLETED|1|8|00:10:00|UNLIMITED|100Mc
"""


def _sacct() -> tuple[Original, ...]:
    more = ({}, {"strict": True}, {"timezone": "Europe/Berlin"}, {"memory_field": "requested", "memory_unknown": "exclude"})
    shipped = _first(catalog.find("traces", "example-sacct.txt"), 2 * ROWS)
    return (Original("jobs.txt", shipped, NODES, more), Original("jobs.txt", _DERIVED.encode(), NODES, more))


_TABLE = """id,submit_ns,nodes,duration_ns,requested_ns,memory_mib,u,text.user
1,0,2,3600000000000,7200000000000,24576,0.5,ada
2,60000000000,4,1800000000000,1800000000000,32768,,"b, ob"
3,120000000000,1,7200000000000,9000000000000,8192,0.25,eve
"""


def _parquet(text: str) -> bytes:
    out = io.BytesIO()
    pl.read_csv(io.StringIO(text), try_parse_dates=True).write_parquet(out)
    return out.getvalue()


def _table() -> tuple[Original, ...]:
    return (
        Original("jobs.csv", _TABLE.encode(), NODES),
        Original("jobs.csv.gz", gzip.compress(_TABLE.encode(), mtime=0), NODES),
        Original("jobs.parquet", _parquet(_TABLE), NODES),
    )


_DATES = """Job ID;Submit Time;Start Time;elapsed_min;#;cpus;mem_gb;user;QOS
7;2024-02-01 08:00:00;2024-02-01T08:00:30.5;12.5;;64;3.5;ada;normal
8;2024-02-01 08:01:00;2024-02-01T08:02:00;1-02:03:04;x;16;64G;Ren\u00e9;debug
9;1706774460;2024-02-01T09:00:00+01:00;60;;8;;eve;normal
"""


def _columns() -> tuple[Original, ...]:
    ticks = "submit:10s, start:10s, end:10s, duration:10s, memory:GB"
    example = _first(catalog.find("traces", "example-ticks.csv"))
    named = ({}, {"map": "id=, duration=elapsed_min:min"}, {"map": "start=Start Time:%Y-%m-%dT%H:%M:%S", "strict": True})
    few = _DATES.replace(";#", "").replace(";;", ";").replace(";x;", ";")
    return (
        Original("month.csv", example, NODES, ({"map": ticks}, {}, {"map": ticks, "strict": True}, {"map": "submit:10s"})),
        Original("own.txt", _DATES.encode(), NODES, named),
        Original("own.txt", few.encode("latin-1"), NODES, ({}, {"timezone": "Asia/Kolkata", "memory_unknown": "exclude"})),
        Original("month.parquet", _parquet(example.decode()), NODES, ({"map": ticks}, {})),
    )


def _openb() -> tuple[Original, ...]:
    return (Original("pods.csv", _first(catalog.find("traces", "openb-gpuspec33.csv.gz")), NODES),)


def _philly() -> tuple[Original, ...]:
    jobs = _first(catalog.find("traces", "philly-2017-10.csv.gz"))
    return (Original("jobs.csv", jobs, (SHARED, SHARED, WHOLE), ({}, {"timezone": "America/Los_Angeles"})),)


def _philly_tasks() -> tuple[Original, ...]:
    jobs = _first(catalog.find("traces", "philly-2017-10.csv.gz"), 2 * ROWS)
    return (
        Original("jobs.csv", jobs, (*4 * (units("gavel", k80=1, p100=1, v100=1),), WHOLE), ({"seed": 3}, {"reference": "k80"})),
    )


def _azure() -> tuple[Original, ...]:
    requests = _first(catalog.find("traces", "azure-llm-2023-conv.csv.gz"))
    return (Original("llm.csv", requests, (*4 * (units("splitwise", a100_80gb=2, h100_80gb=2),), WHOLE)),)


def _dlrm() -> tuple[Original, ...]:
    from tests.helpers.dlrm_rows import CN, HEADER, HN

    rows = [HN.format(k, k % 2, f"{k}.0,{k}.00000000000006,{k + 900}.0") for k in range(4)]
    rows += [CN.format(k, k % 2, ",,") for k in range(4, 8)]
    content = ("\n".join([HEADER, *rows]) + "\n").encode()
    machine = shared_nodes(cores=256, gpu=8, memory=2**20, rdma=100, storage=2**20)
    more = ({}, {"whole": True}, {"every": 2}, {"whole": True, "most_cores": 8})
    return (Original("dlrm.csv", content, (machine, machine, SHARED, WHOLE), more),)


def _vinesim() -> tuple[Original, ...]:
    from tests.helpers.vinesim_files import FILES

    more = ({}, {"inter_arrival": "exponential(7us)"}, {"inter_arrival": 3})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in FILES.items():
            (folder / file).write_text(content)
        rates = vinesim.read_affinity(folder / "affinity.txt", "relative")
        machine = vinesim.machine_of_units(vinesim.read_deployment(folder / "deployment.txt"), rates, [(0, 0)])
    return (Original("trace.txt", FILES["trace.txt"].encode(), (*4 * (machine,), WHOLE), more),)


def _slurm_events() -> tuple[Original, ...]:
    content = (DATA / "slurm-events" / "invented.events").read_bytes()
    more = ({}, {"memory_unknown": "4 GiB"}, {"memory_unknown": "exclude"}, {"keep_requests": True})
    return (Original("jobs.events", content, NODES, more), Original("jobs.gz", gzip.compress(content, mtime=0), (WHOLE,), more))


MAKERS: Mapping[str, Callable[[], tuple[Original, ...]]] = {
    "azure_llm": _azure,
    "columns": _columns,
    "dlrm": _dlrm,
    "openb": _openb,
    "philly": _philly,
    "philly_tasks": _philly_tasks,
    "sacct": _sacct,
    "slurm_events": _slurm_events,
    "swf": _swf,
    "table": _table,
    "vinesim": _vinesim,
}
"""Format -> function that builds its inputs; a test checks that every registered format is included."""
