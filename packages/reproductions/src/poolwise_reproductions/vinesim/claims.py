"""Measured values of the claims of the VineSim report, one function per figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import comb

import numpy as np

from poolwise_reproductions.criteria import Criterion, Measured
from poolwise_reproductions.results import KeyedRow
from poolwise_reproductions.vinesim.results import LATENCY, VineSimResults, cpu_use, makespan, mean_over_seeds, utilization
from poolwise_reproductions.vinesim.setups import (
    AFFINITIES,
    APART_US,
    CPU,
    FP_GOOD,
    GPU,
    GPU_SHARES,
    KINDS,
    SIZES,
    STRENGTHS,
    UNITS,
    Setup,
    loaded,
)

PERCENT = {gpus: share for share, gpus in GPU_SHARES.items()}
NAMES = {"high": "HIGH", "flat": "FLAT", "closer_to_data": "CLOSER_TO_DATA"}
QUEUEING_GAP_US = 100
"""Longest time between arrivals (us) at which jobs of the large workload queue in every deployment."""
FACTORS = (("INT", 0, 8, 10), ("FP_GOOD", 0, 8, 10), ("INT", 0, 40, 1000), ("FP_GOOD", 0, 40, 1000), ("FP_BAD", 40, 0, 10))
"""Section 7.2: task type, GPUs of the slower and of the faster deployment, and the factor between them at low load."""
FACTOR_TOLERANCE = 0.3
"""Relative tolerance of these factors, as in the claims file."""
FLAT_EXPECTED = 25 + 475 * (1 - comb(20, 5) / comb(40, 5))
"""Expected job latency under FLAT, us: a job is as fast as a GPU only if all five tasks run on GPUs."""
SPLIT = Setup(0, layout="split", data_size=SIZES["1 MB"])
"""Figure 18: CPUs and GPUs in separate racks, with 1 MB of data for each task on both racks."""
NEAR_CPUS = replace(SPLIT, data="first rack")
"""Set-up of `SPLIT` with all data in the rack of the CPUs."""


def explain(results: VineSimResults) -> list[str]:
    """Answer, from the runs, a question that the report leaves open."""
    near, everywhere = (2500 / results.mean(setup, makespan).value for setup in (NEAR_CPUS, SPLIT))
    cpu, gpu, within, across = 500.0, 25.0, 800.0, 8000.0  # us: tasks of 30M operations (Table 2), and 1 MB (Table 4)
    units, fetching = 20, (within + across) / 2  # of each kind; half of all data are in the other rack
    apart = units / (cpu + within) + units / (gpu + across)
    spread = units / (cpu + fetching) + units / (gpu + fetching)
    return [
        "The report asks why 1 MB of data kept near the CPUs gives a lower latency than data on both racks (Figure 18f "
        "against 18c). At high load every unit is busy under every policy, so only the rate at which units finish tasks "
        f"matters. With all data in the first rack, its {units} CPUs never fetch across racks: a task takes {cpu:g} + "
        f"{within:g} us on a CPU and {gpu:g} + {across:,.0f} us on one of the {units} GPUs, which gives {apart:.4f} tasks "
        "per us in total. With data everywhere, half of all tasks cross racks on any unit: about "
        f"{fetching:,.0f} us of transfer each, {spread:.4f} tasks per us. Our runs (HIGH, all jobs at once) finish "
        f"{near:.4f} and {everywhere:.4f} tasks per us. The GPUs hardly matter here: the gain comes from CPUs that need "
        "not use the slow uplink."
    ]


def tasks(results: VineSimResults) -> Iterator[KeyedRow]:
    """Measure Table 2: times of tasks of three million operations."""
    for name in ("FP_GOOD", "FP_BAD"):
        for unit, gpus in (("GPU", 40), ("CPU", 0)):
            task = Setup(0, "single", gpus, kind=KINDS[name])
            yield ("Table 2", f"{name}, 3M operations, {unit}", "time of a task"), results.mean(task)


def table_4(results: VineSimResults) -> Iterator[KeyedRow]:
    """Measure Table 4: a task of 2.5 us whose data are one or three switches away; the table omits the 200 ns per switch."""
    for name, size in SIZES.items():
        near = Setup(0, "single", layout="near", data_size=size)
        for words, setup, hops in (("in the rack", near, 1), ("across racks", replace(near, layout="far"), 3)):
            whole = results.mean(setup).value - 2.5
            alone = Measured(whole - 0.2 * hops)
            yield ("Table 4", f"{name}, {words}", "transfer without switches"), alone
            if name == "8 KB":
                yield ("Table 4", f"{name}, {words}, as printed", "transfer without switches"), alone
            if name == "1 MB":
                yield ("Table 4", f"{name}, {words}", "transfer with switches"), Measured(whole)


def figure_4(results: VineSimResults) -> Iterator[KeyedRow]:
    """Measure Figure 4: shares of GPUs for jobs of 30 tasks."""

    def at(gpus: int, good: float, gap: float = 1000) -> Setup:
        return Setup(gap, "thirty", gpus, good=good)

    for name, good, over, under in (("FP_GOOD", 1.0, 26, 32), ("FP_BAD", 0.0, 13, 8)):
        metric = f"mean job latency, {over} GPUs over {under} GPUs"
        yield ("Figure 4a", f"{name} only, low load", metric), results.ratio(at(over, good), at(under, good))
    for good in (0.3, 0.5, 0.7):
        condition = f"{round(100 * good)} % FP_GOOD, low load, 50 % GPUs"
        yield ("Figure 4a", condition, "mean job latency"), results.mean(at(20, good))
    condition = "FP_GOOD, 80 % GPUs, low load, tasks wait for the first of their job"
    metric = "mean job latency over that of independent tasks, minus 1"
    yield ("Figure 4a", condition, metric), _less(results.ratio(replace(at(32, 1.0), graph="fork"), at(32, 1.0)), 1)
    for name, good, sign, word in (("FP_GOOD", 1.0, -1, "fall"), ("FP_BAD", 0.0, 1, "rise")):
        means = np.array([results.mean(at(gpus, good, 0)).value for gpus in GPU_SHARES.values()])
        metric = f"minimum {word} of mean job latency from one share of GPUs to the next"
        yield ("Figure 4b", f"{name} only, high load", metric), Measured(float((sign * np.diff(means)).min()))


def figure_5(results: VineSimResults) -> Iterator[KeyedRow]:
    """Measure Figure 5: task types with varying shares of GPUs, and the load at which the report's factors appear."""
    gaps = results.plan.gaps
    low, held = low_load(results)

    def over(type_name: str, gpus: int, other: str, other_gpus: int, gap: float) -> Measured:
        ratio = results.ratio(_typed(type_name, gpus, gap), _typed(other, other_gpus, gap))
        return replace(ratio, note=f"at {gap:,} us between arrivals") if gap else ratio

    metric = "largest number of the five factors that hold at one load"
    yield ("Load axis", "section 7.2", metric), Measured(held, note=f"at {low:,} us between arrivals")
    same = [over("FP_BAD", 0, "FP_GOOD", 0, gap).value for gap in gaps]
    yield ("Figure 5a", "0 % GPUs", "FP_BAD over FP_GOOD, mean job latency, farthest from 1 at any load"), _farthest(same)
    for words, gap in (("inter-arrival time 0", 0), ("low load", low)):
        metric = "INT over FP_GOOD, mean job latency"
        yield ("Figure 5a", f"0 % GPUs, {words}", metric), over("INT", 0, "FP_GOOD", 0, gap)
        for kind in ("INT", "FP_GOOD"):
            yield ("Figure 5f", f"{kind}, {words}", "mean job latency, 0 % over 100 % GPUs"), over(kind, 0, kind, 40, gap)
        metric = "mean job latency, 100 % over 0 % GPUs"
        yield ("Figure 5f", f"FP_BAD, {words}", metric), over("FP_BAD", 40, "FP_BAD", 0, gap)
    for kind in ("INT", "FP_GOOD"):
        yield ("Figure 5b", f"{kind}, low load", "mean job latency, 0 % over 20 % GPUs"), over(kind, 0, kind, 8, low)
    metric = "mean job latency, 20 % over 0 % GPUs, minus 1"
    yield ("Figure 5b", "FP_BAD, low load", metric), _less(over("FP_BAD", 8, "FP_BAD", 0, low), 1)
    yield from nearest_factors(results)


def low_load(results: VineSimResults) -> tuple[float, int]:
    """Return the time between arrivals, us, at which most factors of Section 7.2 hold (the longest on ties), and their number.

    The report states neither its low load nor another load for any of these factors, so one load serves all of them.
    """
    held = {
        gap: sum(
            Criterion("relative", printed, FACTOR_TOLERANCE).verdict(
                results.ratio(_typed(kind, over, gap), _typed(kind, under, gap))
            )
            == "holds"
            for kind, over, under, printed in FACTORS
        )
        for gap in results.plan.gaps
        if gap > 0
    }
    return max(((gap, number) for gap, number in held.items()), key=lambda pair: (pair[1], pair[0]))


def _typed(kind: str, gpus: int, gap: float) -> Setup:
    """Return the set-up with 25,000 tasks of one type."""
    return Setup(gap, "sizes", gpus, kind=KINDS[kind])


def nearest_factors(results: VineSimResults) -> Iterator[KeyedRow]:
    """Measure each factor of Section 7.2 at the load at which it is nearest to the reported one."""
    for kind, over, under, printed in FACTORS:
        factors = []
        for gap in results.plan.gaps:
            factor = results.ratio(_typed(kind, over, gap), _typed(kind, under, gap))
            factors.append(replace(factor, note=f"at {gap:,} us between arrivals"))
        metric = f"mean job latency, {PERCENT[over]} % over {PERCENT[under]} % GPUs, nearest to the report's at any load"
        yield ("Load axis", kind, metric), _nearest(factors, printed)


def _nearest(factors: list[Measured], printed: float) -> Measured:
    """Return the factor nearest to a printed one; NaN if none was measured."""
    measured = [factor for factor in factors if not np.isnan(factor.value)]
    return min(measured, key=lambda factor: abs(np.log(factor.value / printed)), default=Measured(np.nan))


def figure_6(results: VineSimResults) -> Iterator[KeyedRow]:
    """Measure Figure 6: GPUs alone, approaching zero load."""
    gaps = results.plan.light_gaps
    for name in ("INT", "FP_GOOD"):
        ratio = results.ratio(_typed("FP_BAD", 40, gaps[-1]), _typed(name, 40, gaps[-1]))
        yield ("Figure 6", "100 % GPUs, lowest load", f"FP_BAD over {name}, mean job latency"), ratio

    def steady(kind: str) -> float:
        means = [results.mean(_typed(kind, 40, gap)).value for gap in gaps]
        return next(gap for gap, mean in zip(gaps, means, strict=True) if mean <= 1.05 * min(means))

    metric = "load at which FP_BAD is within 5 % of its lowest latency over that of FP_GOOD, minus 1"
    yield ("Figure 6", "100 % GPUs", metric), Measured(steady("FP_BAD") / steady("FP_GOOD") - 1)


def figure_7(results: VineSimResults) -> Iterator[KeyedRow]:
    """Measure Figure 7: GPUs of different strength."""
    gaps = results.plan.gaps

    def over(strength: str, gpus: int, other: str, other_gpus: int, gap: float) -> float:
        return results.ratio(_strong(strength, gpus, gap), _strong(other, other_gpus, gap)).value

    for name in ("15to1", "15to1 as printed"):
        fall = max(over("1to1", 40, name, 40, gap) for gap in gaps)
        yield ("Figure 7f", f"{name}, 100 % GPUs", "mean job latency of 1to1 over it, largest at any load"), Measured(fall)
        for share, gpus, other_share, other in ((33, 13, 100, 40), (20, 8, 66, 26)):
            distances = [abs(np.log(over(name, gpus, "5to1", other, gap))) for gap in gaps]
            condition, metric = (
                f"{name} with {share} % GPUs against 5to1 with {other_share} %",
                "largest factor between the mean job latencies",
            )
            yield ("Figure 7", condition, f"{metric} at any load"), Measured(float(np.exp(max(distances))))
            if name == "15to1":
                queueing = [each for each, gap in zip(distances, gaps, strict=True) if gap <= QUEUEING_GAP_US]
                yield ("Load axis", condition, f"{metric} up to {QUEUEING_GAP_US} us"), Measured(float(np.exp(max(queueing))))
    decreases = [_mean_fall(results, gap) for gap in gaps]
    metric = "decrease of mean job latency, nearest to the report's at any load"
    yield ("Load axis", "20 % to 100 % GPUs, mean over the six affinities", metric), _nearest(decreases, 10)
    condition = "20 % to 100 % GPUs, inter-arrival time 0, mean over the six affinities"
    yield ("Figure 7", condition, "decrease of mean job latency"), replace(decreases[list(gaps).index(0)], note="")


def _strong(name: str, gpus: int, gap: float) -> Setup:
    """Return the set-up with 25,000 tasks on GPUs of a given strength."""
    return Setup(gap, "sizes", gpus, gpu_int=STRENGTHS[name])


def _mean_fall(results: VineSimResults, gap: float) -> Measured:
    """Return the speedup of 40 GPUs over 8, averaged over the affinities; NaN if one of them was not run."""
    pairs = [[results.values(_strong(name, gpus, gap), LATENCY) for gpus in (8, UNITS)] for name in STRENGTHS]
    if not all(len(few) and len(all_) for few, all_ in pairs):
        return Measured(np.nan)
    falls = np.mean([few / all_ for few, all_ in pairs], axis=0)
    return replace(mean_over_seeds(falls), note=f"at {gap:,} us between arrivals")


def figure_8(results: VineSimResults) -> Iterator[KeyedRow]:
    """Measure Figure 8: Neurasmus kernels."""
    gaps = results.plan.kernel_gaps

    def over(kernel: str, other: str, gap: float) -> Measured:
        return results.ratio(Setup(gap, "kernels", neurasmus=kernel), Setup(gap, "kernels", neurasmus=other))

    def least(pairs: Sequence[tuple[str, str]]) -> Measured:
        ratios = (over(slower, faster, gap) for (faster, slower), gap in product(pairs, gaps))
        return _less(min(ratios, key=lambda ratio: ratio.value), 1)

    yield (
        ("Figure 8a", "inter-arrival time 1000 us", "mean job latency, dfe over mixed, minus 1"),
        _less(over("dfe", "mixed", 1000), 1),
    )
    yield ("Figure 8a", "every load", "mean job latency, dfe over mixed, minimum, minus 1"), least([("mixed", "dfe")])
    ranked = least([("dfe", "phi"), ("phi", "gpu")])
    yield ("Figure 8a", "every load", "mean job latency, phi over dfe and gpu over phi, minimum, minus 1"), ranked
    ratio = [over("dfe", "mixed", gap).value - 1 for gap in gaps]
    crossings = [k for k in range(1, len(gaps)) if ratio[k - 1] < 0 <= ratio[k]]
    if crossings:
        k = crossings[-1]
        share = -ratio[k - 1] / (ratio[k] - ratio[k - 1])
        where = gaps[k - 1] + share * (gaps[k] - gaps[k - 1])
        yield ("Figure 8a", "crossover", "time between arrivals below which DFE alone beats the mix"), Measured(where)


def figure_11(results: VineSimResults) -> Iterator[KeyedRow]:
    """Measure Figures 11 and 12: HIGH compared with FLAT."""
    gaps = results.plan.fine_gaps
    flat = Setup(1000, policy="flat")
    yield ("Figure 11", "HIGH, inter-arrival time 1000 us", "mean job latency"), results.mean(Setup(1000))
    values, condition = results.values(flat, LATENCY), "FLAT, inter-arrival time 1000 us"
    yield ("Figure 11", condition, "mean job latency"), mean_over_seeds(values)
    error = float(values.std(ddof=1)) / np.sqrt(len(values))
    if error:
        distance = abs(float(values.mean()) - FLAT_EXPECTED) / error
        yield ("Figure 11", condition, "4 minus the distance from the expectation in standard errors"), Measured(4 - distance)
    for condition, gap in (("inter-arrival time 0", 0), ("inter-arrival time 1000 us", 1000)):
        ratio = results.ratio(Setup(gap, policy="flat"), Setup(gap))
        yield ("Figure 11", condition, "mean job latency, FLAT over HIGH"), ratio
    best = min(gaps, key=lambda gap: results.mean(Setup(gap, policy="flat")).value)
    yield ("Figure 11", "FLAT", "time between arrivals with the lowest mean job latency"), Measured(best)
    for gap in (6, 30):
        if gap in gaps:
            yield (
                ("Figure 11", f"FLAT, inter-arrival time {gap} us", "mean job latency"),
                results.mean(Setup(gap, policy="flat")),
            )
    if {6, 30} <= set(gaps):
        ratio = results.ratio(Setup(30, policy="flat"), Setup(6, policy="flat"))
        yield ("Figure 11", "FLAT", "mean job latency at 30 us over that at 6 us, minus 1"), _less(ratio, 1)
    over_least = results.ratio(flat, Setup(best, policy="flat"))
    yield ("Figure 11", "FLAT", "mean job latency at 1000 us over the minimum, minus 1"), _less(over_least, 1)
    for name, policy in (("HIGH", "high"), ("FLAT", "flat")):
        yield ("Figure 11", f"{name}, inter-arrival time 0", "makespan"), results.mean(Setup(0, policy=policy), makespan)
    pairs = [[results.mean(Setup(gap, policy=p), utilization).value for p in ("high", "flat")] for gap in gaps if gap >= 50]
    less, condition = [high - flat for high, flat in pairs], "inter-arrival time 50 us and more"
    yield ("Figure 12", condition, "utilization, HIGH minus FLAT, minimum"), Measured(min(less))
    yield ("Figure 12", condition, "utilization, FLAT minus HIGH, minimum"), Measured(-max(less))


def figure_13(results: VineSimResults) -> Iterator[KeyedRow]:
    """Measure Figure 13: use of the CPUs over time."""
    for artifact, gap in (("Figure 13a", 7.0), ("Figure 13", 6.25), ("Figure 13b", 6.0)):
        condition = f"HIGH, inter-arrival time {gap:g} us"
        yield (artifact, condition, "utilization of the CPUs"), results.mean(Setup(gap), cpu_use)
    yield ("Figure 13c", "HIGH, inter-arrival time 0", "makespan"), results.mean(Setup(0), makespan)


def figure_14(results: VineSimResults) -> Iterator[KeyedRow]:
    """Measure Figure 14: tasks that prefer one unit type."""
    gaps = results.plan.fine_gaps

    def only(kind: int, gap: float) -> Setup:
        return Setup(gap, policy="pref", preferred=kind)

    ratios = {gap: results.ratio(only(GPU, gap), Setup(gap)).value for gap in gaps}
    metric = "mean job latency, PREF (GPUs only) over HIGH, farthest from 1"
    easy = [ratio for gap, ratio in ratios.items() if gap >= 7]
    yield ("Figure 14a", "inter-arrival times of 7 us and more", metric), _farthest(easy)
    yield ("Figure 14a", "all loads", metric), _farthest(list(ratios.values()))
    yield ("Figure 14a", "PREF (GPUs only), inter-arrival time 0", "makespan"), results.mean(only(GPU, 0), makespan)
    used = max(results.mean(only(GPU, gap), cpu_use).value for gap in gaps)
    yield ("Figure 14c", "PREF (GPUs only)", "utilization of the CPUs, largest at any load"), Measured(used)
    slow = [results.mean(only(CPU, gap)).value for gap in gaps if gap >= 125]
    farthest = Measured(max(slow, key=lambda value: abs(value - 500)))
    condition = "PREF (CPUs only), inter-arrival times of 125 us and more"
    yield ("Figure 14b", condition, "mean job latency, farthest from 500"), farthest
    condition = "PREF (CPUs only), inter-arrival time 100 us"
    yield ("Figure 14b", condition, "mean job latency, minus 500"), _less(results.mean(only(CPU, 100)), 500)
    ratio = results.ratio(only(CPU, 1000), Setup(1000, policy="flat"))
    yield ("Figure 14b", "inter-arrival time 1000 us", "mean job latency, PREF (CPUs only) over FLAT"), ratio
    rates = Setup(0).affinity()
    many = Measured(float(rates[GPU, FP_GOOD] / rates[CPU, FP_GOOD]))
    yield ("Section 8.7", "30M operations", "CPUs that do the work of one GPU"), many


def figure_16(results: VineSimResults) -> Iterator[KeyedRow]:
    """Measure Figure 16: data of three sizes on alternating units."""

    def at(size: str, policy: str, gap: float, tie: str) -> Setup:
        return Setup(gap, layout="alternate", data_size=SIZES[size], policy=policy, tie=tie)

    for tie in ("order", "random"):
        for artifact, size, gap, best, other, less in (
            ("Figure 16b", "64 KB", 1000, "high", "closer_to_data", 0),
            ("Figure 16b", "64 KB", 50, "closer_to_data", "high", 1),
            ("Figure 16c", "1 MB", 1000, "closer_to_data", "high", 1),
        ):
            ratio = results.ratio(at(size, other, gap, tie), at(size, best, gap, tie))
            metric = f"mean job latency, {NAMES[other]} over {NAMES[best]}{f', minus {less}' if less else ''}"
            yield (artifact, f"{size}, inter-arrival time {gap} us, ties {tie}", metric), _less(ratio, less)
        high, closer, flat = (at("8 KB", policy, 1000, tie) for policy in ("high", "closer_to_data", "flat"))
        flat, condition = replace(flat, tie="order"), f"8 KB, inter-arrival time 1000 us, ties {tie}"
        least = min((results.ratio(other, high) for other in (closer, flat)), key=lambda ratio: ratio.value)
        yield ("Figure 16a", condition, "mean job latency, best other over HIGH, minus 1"), _less(least, 1)
        yield ("Figure 16a", condition, "mean job latency, CLOSER_TO_DATA over FLAT"), results.ratio(closer, flat)
        for size in SIZES:
            three = [at(size, "high", 0, tie), at(size, "closer_to_data", 0, tie), at(size, "flat", 0, "order")]
            means = [results.mean(setup).value for setup in three]
            metric = "largest over smallest mean job latency of the three policies"
            yield ("Figure 16", f"{size}, inter-arrival time 0, ties {tie}", metric), Measured(max(means) / min(means))
    busiest = results.mean(at("1 MB", "high", 50, "order"), utilization)
    yield ("Figure 16c", "1 MB, inter-arrival time 50 us, HIGH", "utilization of all units"), busiest


def figure_18(results: VineSimResults) -> Iterator[KeyedRow]:
    """Measure Figure 18: data of three sizes on separate racks of CPUs and GPUs."""
    for tie in ("order", "random"):
        for artifact, base, name, best, other in (
            ("Figure 18a", SPLIT, "8 KB", "high", "closer_to_data"),
            ("Figure 18c", SPLIT, "1 MB", "closer_to_data", "high"),
            ("Figure 18d", NEAR_CPUS, "8 KB", "high", "closer_to_data"),
            ("Figure 18f", NEAR_CPUS, "1 MB", "closer_to_data", "high"),
        ):
            setup = replace(base, gap=1000, data_size=SIZES[name], policy=best, tie=tie)
            others = replace(setup, policy=other), replace(setup, policy="flat", tie="order")
            least = min((results.ratio(each, setup) for each in others), key=lambda ratio: ratio.value)
            metric = f"mean job latency, best other over {NAMES[best]}, minus 1"
            yield (artifact, f"{name}, inter-arrival time 1000 us, ties {tie}", metric), _less(least, 1)
        for policy in NAMES:
            if policy != "flat" or tie == "order":
                split, near = (replace(base, policy=policy, tie=tie) for base in (SPLIT, NEAR_CPUS))
                condition = f"1 MB, inter-arrival time 0, {NAMES[policy]}, ties {tie}"
                metric = "mean job latency, data on both racks over data near the CPUs"
                ratio = results.ratio(split, near)
                yield ("Figure 18f", condition, metric), ratio
                yield ("Figure 18f", condition, f"{metric}, minus 1"), _less(ratio, 1)
    for artifact, words, setup in (("Figure 18f", "near the CPUs", NEAR_CPUS), ("Figure 18c", "on both racks", SPLIT)):
        rate = mean_over_seeds(2500 / results.values(setup, makespan))
        yield (artifact, f"1 MB, data {words}, inter-arrival time 0, HIGH", "tasks per us"), rate


def transfers(results: VineSimResults) -> Iterator[KeyedRow]:
    """Measure how the share of data transfers in latency depends on the strength of GPUs: jobs of Figure 16 that run alone."""
    for name, size in SIZES.items():
        with_data, without = (
            np.array([results.values(loaded(strength, data), LATENCY) for strength in AFFINITIES]) for data in (size, 0)
        )
        rises = np.diff(with_data / without, axis=0).min(axis=0)
        metric = "mean job latency with over without transfers, minimum rise from one strength of GPUs to the next"
        yield ("Abstract", f"{name}, HIGH, inter-arrival time {APART_US:,} us", metric), mean_over_seeds(rises)


def _less(value: Measured, amount: float) -> Measured:
    return replace(value, value=value.value - amount, low=value.low - amount, high=value.high - amount)


def _farthest(ratios: list[float]) -> Measured:
    return Measured(max(ratios, key=lambda ratio: abs(ratio - 1)))
