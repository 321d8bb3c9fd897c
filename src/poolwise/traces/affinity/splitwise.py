"""Prompt and token times of large language models on GPU servers, as tables of affinity and power.

Source: Patel et al. 2024, "Splitwise: Efficient Generative LLM Inference Using Phase Splitting", the measurements of its
simulator as CSV: model, hardware, prompt_size, batch_size, token_size, peak_power, average_power (shares of the GPUs' rated
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
from poolwise.traces.table_checks import known_numbers, refuse, require
from poolwise.traces.table_columns import Source, columns_of_csv

_NUMBERS = ("prompt_size", "batch_size", "token_size", "peak_power", "average_power", "prompt_time", "token_time")
TOKEN = "token"
PROMPT = "prompt-"
TOKENS = 128
"""Tokens generated in the runs that are read; longer ones were cut short and have no power."""
PLAIN = 512
"""Prompt size of the runs that token times are read from."""


def _rated() -> Mapping[str, float]:
    return {"a100-80gb": 400.0, "h100-80gb": 700.0}


@register("affinities", "splitwise")
@dataclass(frozen=True)
class Splitwise:
    """Splitwise's profiles at batch size 1: a unit is a server; task types prompt-128 to prompt-8192, and token.

    A token is a million operations, so that a rate is tokens per second: of a prompt size S / mean prompt time, of the token
    phase 1 / mean token time. While it works on a prompt a server draws the peak power of that run, on tokens the average
    power. Hardware whose power was not measured (the file has 0; both H100) takes the shares of the one that was.

    Parameters
    ----------
    model, tensor_parallel
        Which runs: llama2-70b on 2, 4 or 8 GPUs, bloom-176b on 8.
    gpu_watts
        Rated power of a GPU of each hardware to be read (data sheets).
    idle_share
        Share of it that an idle server draws: assumed, the file does not have it.
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
        ours = self._chosen(source, runs)
        rates: dict[str, dict[str, float]] = {}
        shares: dict[str, dict[str, float]] = {}
        for unit in self.gpu_watts:
            here = ours & (source.texts("hardware") == unit)
            if not here.any():
                known = sorted(set(source.texts("hardware").tolist()))
                raise UnknownNameError.of("hardware", unit, known, file=path, field="hardware")
            sizes = sorted({int(size) for size in runs.columns["prompt_size"][here].tolist()})
            each = {f"{PROMPT}{size}": here & (runs.columns["prompt_size"] == size) for size in sizes}
            rates[unit] = {k: size * 1e3 / runs.mean("prompt_time", each[k]) for k, size in zip(each, sizes, strict=True)}
            rates[unit][TOKEN] = 1e3 / runs.mean("token_time", each[f"{PROMPT}{PLAIN}"])
            if any((runs.columns["peak_power"][rows] > 0).any() for rows in each.values()):
                shares[unit] = {k: runs.mean("peak_power", rows) for k, rows in each.items()}
                shares[unit][TOKEN] = runs.mean("average_power", each[f"{PROMPT}{PLAIN}"])
        return self._tables(rates, shares, path)

    def _chosen(self, source: Source, runs: _Runs) -> BoolArray:
        """(n_row,) runs of the model at batch size 1."""
        models, parallel = source.texts("model"), source.wholes("tensor_parallel")
        if self.model not in set(models.tolist()):
            raise UnknownNameError.of("model", self.model, set(models.tolist()), file=source.path, field="model")
        alone = (runs.columns["batch_size"] == 1) & (runs.columns["token_size"] == TOKENS)
        chosen: BoolArray = (models == self.model) & (parallel == self.tensor_parallel) & alone
        if not chosen.any():
            known = ", ".join(map(str, sorted(set(parallel[models == self.model].tolist()))))
            raise InputError(
                f"no runs of {self.model} on {self.tensor_parallel} GPUs",
                file=source.path,
                field="tensor_parallel",
                remedy=f"tensor_parallel: {known}",
            )
        return chosen

    def _tables(self, rates: dict[str, dict[str, float]], shares: dict[str, dict[str, float]], path: Path) -> UnitTables:
        if not shares:
            raise InputError("no power was measured", file=path, field="peak_power", remedy="read a hardware that has it, too")
        measured = next(iter(shares))
        rated = {unit: watts * self.tensor_parallel for unit, watts in self.gpu_watts.items()}
        busy = {
            unit: {task: share * rated[unit] for task, share in shares.get(unit, shares[measured]).items()} for unit in rates
        }
        notes = [
            f"Splitwise, {self.model} on servers of {self.tensor_parallel} GPUs, batch 1: a token is 1,000,000 operations.",
            "Patel et al., ISCA 2024; (c) 2024 Pratyush Patel, MIT License. Rows: unit types 0 to 5 (none), then the servers.",
            f"Watts: measured shares of rated power ({', '.join(f'{k} {v:g} W a GPU' for k, v in self.gpu_watts.items())});",
            f"idle {self.idle_share:g} of it (assumed).",
        ]
        notes += [
            f"The power of {unit} was not measured: it has the shares of {measured}." for unit in rates if unit not in shares
        ]
        idle = {unit: self.idle_share * watts for unit, watts in rated.items()}
        return UnitTables.of(rates, tuple(notes), busy=busy, idle=idle)


class _Runs:
    """Numbers of the runs, and their means."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.columns: dict[str, FloatArray] = {name: known_numbers(source, name) for name in _NUMBERS}
        for name, column in self.columns.items():
            refuse(source, name, ~(column >= 0), "is not 0 or more")

    def mean(self, name: str, rows: BoolArray) -> float:
        """Mean over the rows that have a value; raises InputError if none has."""
        values = self.columns[name][rows]
        if not (values > 0).any():
            raise InputError(
                "not measured in the runs that are asked for", file=self._source.path, field=name, remedy="choose other runs"
            )
        return float(np.mean(values[values > 0]))
