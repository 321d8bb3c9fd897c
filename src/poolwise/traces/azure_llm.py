"""Trace format of Azure's LLM inference services (2023): each request is a prompt task and a token generation task.

Source: Patel et al. 2024 (Splitwise), the published traces: TIMESTAMP, ContextTokens, GeneratedTokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path

import numpy as np

from poolwise import catalog
from poolwise.arrays import IntArray
from poolwise.errors import InputError
from poolwise.model import Machine, Workload
from poolwise.performance.affinity import compute_times, rates
from poolwise.quantities import SECOND
from poolwise.registry import InputFile, register
from poolwise.traces import time_of_day
from poolwise.traces.affinity.splitwise import PROMPT, TOKEN
from poolwise.traces.affinity.tables import OPERATIONS
from poolwise.traces.format import TraceFormat
from poolwise.traces.numbers import NotANumber, are_whole
from poolwise.traces.selection import select
from poolwise.traces.table_checks import refuse, require
from poolwise.traces.table_columns import Source, columns_of_csv, csv_header
from poolwise.traces.text_files import stem
from poolwise.traces.vinesim.tasks import TaskList
from poolwise.traces.vinesim.types import UNITS, Types
from poolwise.traces.vinesim.workload import workload_of_tasks

_COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_TIME_REMEDY = "write a time such as 2023-11-16 18:15:46.6805900"
_MAX_TOKENS = 2**24
"""Largest accepted number of tokens in a request."""


@register("formats", "azure_llm")
@dataclass(frozen=True)
class AzureLLM(TraceFormat):
    """Azure LLM inference trace, CSV (plain or gzip), for a machine of units with Splitwise's affinities.

    A request is a job of two tasks that may run on different units. Its prompt takes as long as the next larger prompt that was
    measured (task types prompt-128, prompt-256, ...) and yields the first token. The remaining tokens are one task of type
    "token". The token task does not wait for its prompt: it arrives when the prompt would finish on the fastest idle unit, even
    if the prompt actually finishes later. The transfer of the KV cache between units is not modeled. Requests that exceed the
    largest prompt, or have no tokens, are excluded and counted.

    Parameters
    ----------
    types
        Table of type names: a file, or "catalog:NAME".
    """

    types: InputFile = "catalog:splitwise-types.toml"

    def recognizes(self, path: Path) -> bool:
        """Return whether the header has the columns of this trace."""
        return {*_COLUMNS} <= csv_header(path)

    def read(self, path: Path, machine: Machine) -> Workload:
        """Read requests as tasks; "parent" is the number of the request, so job latency covers both of its tasks."""
        kinds, sizes, token = self._prompt_types()
        source = columns_of_csv(path)
        require(source, _COLUMNS)
        time, context, generated = _times(source), source.wholes("ContextTokens"), source.wholes("GeneratedTokens")
        for name, column in (("ContextTokens", context), ("GeneratedTokens", generated)):
            refuse(source, name, (column < 0) | (column > _MAX_TOKENS), f"is not between 0 and {_MAX_TOKENS}")
        reasons = {
            f"prompt of more than {sizes[-1]:,} tokens": context > sizes[-1],
            "no tokens requested or generated": (context == 0) | (generated == 0),
        }
        keep, excluded = select(reasons, path, "use a trace whose prompts are within the measured sizes")
        order = np.flatnonzero(keep)[np.argsort(time[keep], kind="stable")]
        arrival = time[order] - time[order[0]]
        at = np.searchsorted(sizes, context[order])
        prompt, size = kinds[at], sizes[at] * OPERATIONS
        workload = _workload(arrival, prompt, size, (generated[order] - 1) * OPERATIONS, token, machine)
        return replace(workload, excluded=excluded, name=stem(path))

    def _prompt_types(self) -> tuple[IntArray, IntArray, int]:
        """Return the task types of prompts, their sizes in tokens in ascending order, and the task type of tokens."""
        file = catalog.resolve("affinities", self.types)
        names = Types.read(file).tasks
        sizes = {
            int(name.removeprefix(PROMPT)): k
            for k, name in enumerate(names)
            if name.startswith(PROMPT) and are_whole([name.removeprefix(PROMPT)])
        }
        if not sizes or TOKEN not in names:
            remedy = "generate the table with `poolwise affinity splitwise`"
            raise InputError(f"no task types {PROMPT}SIZE and {TOKEN}", file=file, field="task_types", remedy=remedy)
        ascending = sorted(sizes)
        return np.array([sizes[size] for size in ascending]), np.array(ascending), names.index(TOKEN)


def _workload(arrival: IntArray, prompt: IntArray, size: IntArray, rest: IntArray, token: int, machine: Machine) -> Workload:
    """Build two tasks per request, or one if the request generates only one token.

    (n,) each: arrival in ns; task type and operations of the prompt; operations of the tokens after the first.
    """
    n = len(arrival)
    fastest = rates(machine).max(axis=1, initial=0.0)
    if not len(fastest) or int(max(token, prompt.max())) >= len(fastest) or not (fastest[prompt] > 0).all():
        remedy = "build it with an affinity table from `poolwise affinity splitwise`"
        raise InputError("this machine has no units for prompts and tokens", field="machine", remedy=remedy)
    token_arrival = arrival + compute_times(size.astype(np.float64), fastest[prompt])
    has_rest = rest > 0
    request = np.concatenate([np.arange(n), np.flatnonzero(has_rest)])
    order = np.argsort(request, kind="stable")
    kind = np.concatenate([prompt, np.full(int(has_rest.sum()), token)])[order]
    operations = np.concatenate([size, rest[has_rest]])[order]
    none = np.zeros(len(order), dtype=np.int64)
    table = [kind, none, none, none, operations, none + UNITS.index("unspecified"), np.arange(len(order))]
    at = np.concatenate([arrival, token_arrival[has_rest]])[order]
    workload = workload_of_tasks(TaskList.of(np.stack(table, axis=1)), machine, at)
    parent = request[order][workload.attributes["parent"].astype(np.int64)]
    return replace(workload, attributes={**workload.attributes, "parent": parent})


def _times(source: Source) -> IntArray:
    """Return the times since the first second of the trace, (n_row,) ns."""
    whole, fraction = [], []
    for row, word in enumerate(source.texts("TIMESTAMP").tolist()):
        seconds, _, digits = word.strip().partition(".")
        if digits and not (digits.isascii() and digits.isdigit() and len(digits) <= 9):
            raise source.error(row, "TIMESTAMP", f"'{word}' is not a time", _TIME_REMEDY)
        whole.append(seconds)
        fraction.append(int(digits.ljust(9, "0")))
    try:
        whole_seconds, _ = time_of_day.seconds(whole, UTC)
    except NotANumber as error:
        raise source.error(error.position, "TIMESTAMP", error.problem, _TIME_REMEDY) from error
    times: IntArray = (whole_seconds - whole_seconds.min()) * SECOND + np.array(fraction, dtype=np.int64)
    return times
