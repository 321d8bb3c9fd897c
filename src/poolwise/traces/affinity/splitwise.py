"""Affinity and power tables of large language models on GPU servers, from Splitwise's measured prompt and token times.

Source: Patel et al. 2024, "Splitwise: Efficient Generative LLM Inference Using Phase Splitting"; CSV of the measurements in
its simulator: model, hardware, prompt_size, batch_size, token_size, peak_power, average_power (shares of the GPUs' rated
power), prompt_time, token_time (ms), tensor_parallel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from poolwise.arrays import BoolArray, FloatArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.registry import register
from poolwise.traces.affinity.tables import UnitTables
from poolwise.traces.table_checks import refuse, require
from poolwise.traces.table_columns import Source, columns_of_csv, known_numbers

_NUMBERS = ("prompt_size", "batch_size", "token_size", "peak_power", "average_power", "prompt_time", "token_time")
TOKEN = "token"
PROMPT = "prompt-"
TOKENS = 128
"""Number of generated tokens in the runs that are read; longer runs were cut short and have no measured power."""
PLAIN = 512
"""Prompt size of the runs that provide token times."""


def _rated() -> Mapping[str, float]:
    return {"a100-80gb": 400.0, "h100-80gb": 700.0}


@register("affinities", "splitwise")
@dataclass(frozen=True)
class Splitwise:
    """Splitwise's profiles at batch size 1: a unit is a server; task types are prompt-128 to prompt-8192, and token.

    A token counts as a million operations, so a rate is tokens per second: S / mean prompt time for prompt size S, and 1 / mean
    token time for the token phase. A server draws the peak power of the run while it processes a prompt, and the average power
    while it generates tokens. Hardware without measured power (0 in the file; both H100) uses the shares of the measured
    hardware.

    Parameters
    ----------
    model, tensor_parallel
        Runs to read: llama2-70b on 2, 4 or 8 GPUs, or bloom-176b on 8.
    gpu_watts
        Hardware to read -> rated power of a GPU (data sheets).
    idle_share
        Share of rated power that an idle server draws; assumed, because the file does not state it.
    """

    model: str = "llama2-70b"
    tensor_parallel: int = 8
    gpu_watts: Mapping[str, float] = field(default_factory=_rated)
    idle_share: float = 0.15

    def read(self, path: Path) -> UnitTables:
        """Read perf_model.csv."""
        source = columns_of_csv(path)
        require(source, ("model", "hardware", "tensor_parallel", *_NUMBERS))
        runs = _Runs(source)
        selected = self._select_runs(source, runs)
        rates: dict[str, dict[str, float]] = {}
        shares: dict[str, dict[str, float]] = {}
        for unit in self.gpu_watts:
            here = selected & (source.texts("hardware") == unit)
            if not here.any():
                hardware = sorted(set(source.texts("hardware").tolist()))
                raise UnknownNameError.of("hardware", unit, hardware, file=path, field="hardware")
            sizes = sorted({int(size) for size in runs.columns["prompt_size"][here].tolist()})
            each = {f"{PROMPT}{size}": here & (runs.columns["prompt_size"] == size) for size in sizes}
            rates[unit] = {k: size * 1e3 / runs.mean("prompt_time", each[k]) for k, size in zip(each, sizes, strict=True)}
            rates[unit][TOKEN] = 1e3 / runs.mean("token_time", each[f"{PROMPT}{PLAIN}"])
            if any((runs.columns["peak_power"][rows] > 0).any() for rows in each.values()):
                shares[unit] = {k: runs.mean("peak_power", rows) for k, rows in each.items()}
                shares[unit][TOKEN] = runs.mean("average_power", each[f"{PROMPT}{PLAIN}"])
        return self._tables(rates, shares, path)

    def _select_runs(self, source: Source, runs: _Runs) -> BoolArray:
        """Return an (n_row,) mask of the model's runs at batch size 1."""
        models, parallel = source.texts("model"), source.wholes("tensor_parallel")
        if self.model not in set(models.tolist()):
            raise UnknownNameError.of("model", self.model, set(models.tolist()), file=source.path, field="model")
        alone = (runs.columns["batch_size"] == 1) & (runs.columns["token_size"] == TOKENS)
        selected: BoolArray = (models == self.model) & (parallel == self.tensor_parallel) & alone
        if not selected.any():
            sizes = ", ".join(map(str, sorted(set(parallel[models == self.model].tolist()))))
            problem, remedy = (
                f"no runs of {self.model} on {self.tensor_parallel} GPUs",
                f"set tensor_parallel to one of {sizes}",
            )
            raise InputError(problem, file=source.path, field="tensor_parallel", remedy=remedy)
        return selected

    def _tables(self, rates: dict[str, dict[str, float]], shares: dict[str, dict[str, float]], path: Path) -> UnitTables:
        if not shares:
            remedy = "include hardware with measured power"
            raise InputError("no power was measured", file=path, field="peak_power", remedy=remedy)
        measured = next(iter(shares))
        rated = {unit: watts * self.tensor_parallel for unit, watts in self.gpu_watts.items()}
        busy = {
            unit: {task: share * rated[unit] for task, share in shares.get(unit, shares[measured]).items()} for unit in rates
        }
        notes = [
            f"Splitwise, {self.model} on servers of {self.tensor_parallel} GPUs, batch 1: a token is 1,000,000 operations.",
            "Patel et al., ISCA 2024; (c) 2024 Pratyush Patel, MIT License. Rows: unit types 0 to 5 (none), then the servers.",
            f"Watts: measured shares of rated power ({', '.join(f'{k} {v:g} W per GPU' for k, v in self.gpu_watts.items())});",
            f"idle power is {self.idle_share:g} of rated power (assumed).",
        ]
        notes += [
            f"The power of {unit} was not measured; the shares of {measured} are used." for unit in rates if unit not in shares
        ]
        idle = {unit: self.idle_share * watts for unit, watts in rated.items()}
        return UnitTables.of(rates, tuple(notes), busy=busy, idle=idle)


class _Runs:
    """Numeric columns of the runs, with their means."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.columns: dict[str, FloatArray] = {name: known_numbers(source, name) for name in _NUMBERS}
        for name, column in self.columns.items():
            refuse(source, name, ~(column >= 0), "is not 0 or more")

    def mean(self, name: str, rows: BoolArray) -> float:
        """Return the mean over the rows with a value; raise InputError if no row has one."""
        values = self.columns[name][rows]
        if not (values > 0).any():
            problem = "not measured in the selected runs"
            raise InputError(problem, file=self._source.path, field=name, remedy="select other runs")
        return float(np.mean(values[values > 0]))
