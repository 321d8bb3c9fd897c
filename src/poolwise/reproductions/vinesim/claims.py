"""Measured values of the claims of the VineSim report, one function per figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import comb

import numpy as np

from poolwise.comparison.published import Key
from poolwise.comparison.verdicts import Measured
from poolwise.reproductions.vinesim.results import VineSimResults, makespan, mean_over_seeds, utilization_of
from poolwise.reproductions.vinesim.setups import (
    CPU,
    FP_BAD,
    FP_GOOD,
    GPU,
    GPU_SHARES,
    INT,
    KB8,
    KB64,
    MB1,
    NEAR_FAR,
    STRENGTHS,
    UNITS,
    JobSet,
    Setup,
)

Item = tuple[Key, Measured]

KINDS = {"INT": INT, "FP_GOOD": FP_GOOD, "FP_BAD": FP_BAD}
PERCENT = {gpus: share for share, gpus in GPU_SHARES.items()}
SIZES = {"8 KB": KB8, "64 KB": KB64, "1 MB": MB1}
NAMES = {"high": "HIGH", "flat": "FLAT", "closer_to_data": "CLOSER_TO_DATA"}
QUEUEING_GAP_US = 100
"""us between arrivals up to which jobs of the large workload queue in every deployment."""
FACTORS = (("INT", 0, 8, 10), ("FP_GOOD", 0, 8, 10), ("INT", 0, 40, 1000), ("FP_GOOD", 0, 40, 1000), ("FP_BAD", 40, 0, 10))
"""Section 7.2: task type, GPUs of the slower and of the faster deployment, and the factor between them at low load."""
FLAT_EXPECTED = 25 + 475 * (1 - comb(20, 5) / comb(40, 5))
"""Expected job latency under FLAT, us: a job is as fast as a GPU only if all five tasks run on GPUs."""


def measure(results: VineSimResults, jobs: JobSet | None = None) -> dict[Key, Measured]:
    """Return the measured value of every claim that was run, or of the claims about one set of jobs."""
    found = [item for of, part in _PARTS if jobs in (None, of) for item in part(results)]
    return {key: value for key, value in found if not np.isnan(value.value)}


def explain(results: VineSimResults) -> list[str]:
    """Answer a question that the report leaves open from the runs."""
    near = Setup(0, layout="split", data="first rack", data_size=MB1)
    rates = {name: 2500 / results.mean(setup, makespan).value for name, setup in (("near", near), ("all", _everywhere(near)))}
    return [
        "The report asks why 1 MB of data kept near the CPUs gives a lower latency than data on both racks (Figure 18f "
        "against 18c). At high load every unit is busy under every policy, so only the rate at which units finish tasks "
        "matters. With all data in the first rack, its 20 CPUs never fetch across racks: a task takes 500 + 800 us on a CPU "
        "and 25 + 8,000 us on one of the 20 GPUs, which gives 0.0179 tasks per us in total. With data everywhere, half of all "
        "tasks cross racks on any unit: about 4,400 us each on 40 units, 0.0091 tasks per us. Our runs (HIGH, all jobs at "
        f"once) finish {rates['near']:.4f} and {rates['all']:.4f} tasks per us. The GPUs hardly matter here: the gain comes "
        "from CPUs that need not use the slow uplink."
    ]


def _tasks(results: VineSimResults) -> Iterator[Item]:
    for name, kind in (("FP_GOOD", FP_GOOD), ("FP_BAD", FP_BAD)):
        for unit, gpus in (("GPU", 40), ("CPU", 0)):
            key = ("Table 2", f"{name}, 3M operations, {unit}", "time of a task")
            yield key, results.mean(Setup(0, "single", gpus, kind=kind))


def _figure_4(results: VineSimResults) -> Iterator[Item]:
    def at(gpus: int, good: float, gap: float) -> Setup:
        return Setup(gap, "thirty", gpus, good=good)

    key = ("Figure 4a", "FP_GOOD only, low load", "mean job latency, 26 GPUs over 32 GPUs")
    yield key, results.ratio(at(26, 1.0, 1000), at(32, 1.0, 1000))
    key = ("Figure 4a", "FP_BAD only, low load", "mean job latency, 13 GPUs over 8 GPUs")
    yield key, results.ratio(at(13, 0.0, 1000), at(8, 0.0, 1000))
    for good in (0.3, 0.5, 0.7):
        key = ("Figure 4a", f"{round(100 * good)} % FP_GOOD, low load, 50 % GPUs", "mean job latency")
        yield key, results.mean(at(20, good, 1000))
    for name, good, sign, word in (("FP_GOOD", 1.0, -1, "fall"), ("FP_BAD", 0.0, 1, "rise")):
        means = np.array([results.mean(at(gpus, good, 0)).value for gpus in GPU_SHARES.values()])
        metric = f"least {word} of mean job latency from one share of GPUs to the next"
        yield ("Figure 4b", f"{name} only, high load", metric), Measured(float((sign * np.diff(means)).min()))


def _figure_5(results: VineSimResults) -> Iterator[Item]:
    low = max(results.plan.gaps)

    def at(kind: str, gpus: int, gap: float) -> Setup:
        return Setup(gap, "sizes", gpus, kind=KINDS[kind])

    same = [results.ratio(at("FP_BAD", 0, gap), at("FP_GOOD", 0, gap)).value for gap in results.plan.gaps]
    yield ("Figure 5a", "0 % GPUs", "FP_BAD over FP_GOOD, mean job latency, farthest from 1 at any load"), _farthest(same)
    key = ("Figure 5a", "0 % GPUs, low load", "INT over FP_GOOD, mean job latency")
    yield key, results.ratio(at("INT", 0, low), at("FP_GOOD", 0, low))
    for kind in ("INT", "FP_GOOD"):
        key = ("Figure 5b", f"{kind}, low load", "mean job latency, 0 % over 20 % GPUs")
        yield key, results.ratio(at(kind, 0, low), at(kind, 8, low))
        for words, gap in (("inter-arrival time 0", 0.0), ("low load", low)):
            key = ("Figure 5f", f"{kind}, {words}", "mean job latency, 0 % over 100 % GPUs")
            yield key, results.ratio(at(kind, 0, gap), at(kind, 40, gap))
    key = ("Figure 5b", "FP_BAD, low load", "mean job latency, 20 % over 0 % GPUs, less 1")
    yield key, _less(results.ratio(at("FP_BAD", 8, low), at("FP_BAD", 0, low)), 1)
    for words, gap in (("inter-arrival time 0", 0.0), ("low load", low)):
        key = ("Figure 5f", f"FP_BAD, {words}", "mean job latency, 100 % over 0 % GPUs")
        yield key, results.ratio(at("FP_BAD", 40, gap), at("FP_BAD", 0, gap))
    key = ("Figure 5a", "0 % GPUs, inter-arrival time 0", "INT over FP_GOOD, mean job latency")
    yield key, results.ratio(at("INT", 0, 0), at("FP_GOOD", 0, 0))
    for kind, over, under, printed in FACTORS:
        metric = f"mean job latency, {PERCENT[over]} % over {PERCENT[under]} % GPUs"
        found = nearest_factor(results, kind, over, under, printed)
        yield ("Load axis", kind, f"{metric}, nearest to the report's at any load"), found


def nearest_factor(results: VineSimResults, kind: str, over: int, under: int, printed: float) -> Measured:
    """Return the factor of Figure 5 at the load where it is nearest to the report's, which does not state its low load."""
    found = []
    for gap in results.plan.gaps:
        above, below = (Setup(gap, "sizes", gpus, kind=KINDS[kind]) for gpus in (over, under))
        found.append(replace(results.ratio(above, below), note=f"at {gap:,} us between arrivals"))
    return _nearest(found, printed)


def _nearest(found: list[Measured], printed: float) -> Measured:
    """Return the factor nearest to a printed one; NaN if none was measured."""
    known = [factor for factor in found if not np.isnan(factor.value)]
    return min(known, key=lambda factor: abs(np.log(factor.value / printed)), default=Measured(np.nan))


def _figure_6(results: VineSimResults) -> Iterator[Item]:
    gaps = results.plan.light_gaps

    def at(kind: int, gap: float) -> Setup:
        return Setup(gap, "sizes", 40, kind=kind)

    for name in ("INT", "FP_GOOD"):
        key = ("Figure 6", "100 % GPUs, lowest load", f"FP_BAD over {name}, mean job latency")
        yield key, results.ratio(at(FP_BAD, gaps[-1]), at(KINDS[name], gaps[-1]))

    def steady(kind: int) -> float:
        means = [results.mean(at(kind, gap)).value for gap in gaps]
        return next(gap for gap, mean in zip(gaps, means, strict=True) if mean <= 1.05 * min(means))

    metric = "load at which FP_BAD is within 5 % of its least latency over that of FP_GOOD, less 1"
    yield ("Figure 6", "100 % GPUs", metric), Measured(steady(FP_BAD) / steady(FP_GOOD) - 1)


def figure_7(results: VineSimResults) -> Iterator[Item]:
    """Measure Figure 7: GPUs of different strength."""
    gaps = results.plan.gaps

    def at(strength: str, gpus: int, gap: float) -> Setup:
        return Setup(gap, "sizes", gpus, gpu_int=STRENGTHS[strength])

    for name in ("15to1", "15to1 as printed"):
        falls = [results.ratio(at("1to1", 40, gap), at(name, 40, gap)).value for gap in gaps]
        key = ("Figure 7f", f"{name}, 100 % GPUs", "mean job latency of 1to1 over it, largest at any load")
        yield key, Measured(max(falls))
        for share, gpus, other_share, other in ((33, 13, 100, 40), (20, 8, 66, 26)):
            distances = [abs(np.log(results.ratio(at(name, gpus, gap), at("5to1", other, gap)).value)) for gap in gaps]
            condition = f"{name} with {share} % GPUs against 5to1 with {other_share} %"
            metric = "factor 2 less the largest factor between the mean job latencies at any load"
            yield ("Figure 7", condition, metric), Measured(2 - float(np.exp(max(distances))))
            if name == "15to1":
                queueing = [each for each, gap in zip(distances, gaps, strict=True) if gap <= QUEUEING_GAP_US]
                metric = f"factor 2 less the largest factor between the mean job latencies up to {QUEUEING_GAP_US} us"
                yield ("Load axis", condition, metric), Measured(2 - float(np.exp(max(queueing))))
    decreases = [_mean_fall(results, gap) for gap in gaps]
    metric = "decrease of mean job latency, nearest to the report's at any load"
    yield ("Load axis", "20 % to 100 % GPUs, mean over the six affinities", metric), _nearest(decreases, 10)
    condition = "20 % to 100 % GPUs, inter-arrival time 0, mean over the six affinities"
    yield ("Figure 7", condition, "decrease of mean job latency"), replace(decreases[list(gaps).index(0)], note="")


def _mean_fall(results: VineSimResults, gap: float) -> Measured:
    """Return the mean over the affinities of the speedup of 40 GPUs over 8; NaN if one of them was not run."""
    falls = []
    for strength in STRENGTHS.values():
        few, all_ = (results.values(Setup(gap, "sizes", gpus, gpu_int=strength)) for gpus in (8, UNITS))
        if not len(few) or not len(all_):
            return Measured(np.nan)
        falls.append(few / all_)
    return replace(mean_over_seeds(np.mean(falls, axis=0)), note=f"at {gap:,} us between arrivals")


def _figure_8(results: VineSimResults) -> Iterator[Item]:
    def at(units: str, gap: float) -> Setup:
        return Setup(gap, "kernels", neurasmus=units)

    gaps = results.plan.kernel_gaps
    for gap in (50, 1000):
        for a, b in (("mixed", "dfe"), ("dfe", "phi"), ("phi", "gpu")):
            key = ("Figure 8a", f"inter-arrival time {gap} us", f"mean job latency, {b} over {a}, less 1")
            yield key, _less(results.ratio(at(b, gap), at(a, gap)), 1)
    for a, b in (("dfe", "phi"), ("phi", "gpu")):
        least = min((results.ratio(at(b, gap), at(a, gap)) for gap in gaps), key=lambda ratio: ratio.value)
        yield ("Figure 8a", "every load", f"mean job latency, {b} over {a}, least, less 1"), _less(least, 1)
    ratio = [results.ratio(at("dfe", gap), at("mixed", gap)).value - 1 for gap in gaps]
    crossings = [k for k in range(1, len(gaps)) if ratio[k - 1] < 0 <= ratio[k]]
    if crossings:
        k = crossings[-1]
        share = -ratio[k - 1] / (ratio[k] - ratio[k - 1])
        where = gaps[k - 1] + share * (gaps[k] - gaps[k - 1])
        yield ("Figure 8a", "crossover", "time between arrivals below which DFE alone beats the mix"), Measured(where)


def _figure_11(results: VineSimResults) -> Iterator[Item]:
    high, flat = Setup(1000), Setup(1000, policy="flat")
    yield ("Figure 11", "HIGH, inter-arrival time 1000 us", "mean job latency"), results.mean(high)
    values = results.values(flat)
    condition = "FLAT, inter-arrival time 1000 us"
    yield ("Figure 11", condition, "mean job latency"), mean_over_seeds(values)
    error = float(values.std(ddof=1)) / np.sqrt(len(values))
    distance = abs(float(values.mean()) - FLAT_EXPECTED) / error
    yield ("Figure 11", condition, "4 less the distance from the expectation in standard errors"), Measured(4 - distance)
    for gap in (0, 1000):
        ratio = results.ratio(Setup(gap, policy="flat"), Setup(gap))
        yield ("Figure 11", f"inter-arrival time {gap}{' us' if gap else ''}", "mean job latency, FLAT over HIGH"), ratio
    gaps = results.plan.fine_gaps
    means = {gap: results.mean(Setup(gap, policy="flat")).value for gap in gaps}
    best = min(means, key=lambda gap: means[gap])
    yield ("Figure 11", "FLAT", "time between arrivals with the least mean job latency"), Measured(best)
    metric = "mean job latency at 1000 us over the least, less 1"
    yield ("Figure 11", "FLAT", metric), _less(results.ratio(flat, Setup(best, policy="flat")), 1)
    for name, policy in (("HIGH", "high"), ("FLAT", "flat")):
        yield ("Figure 11", f"{name}, inter-arrival time 0", "makespan"), results.mean(Setup(0, policy=policy), makespan)
    overall = utilization_of("overall")
    less = [
        results.mean(Setup(gap), overall).value - results.mean(Setup(gap, policy="flat"), overall).value
        for gap in gaps
        if gap >= 50
    ]
    yield ("Figure 12", "inter-arrival time 50 us and more", "utilisation, HIGH less FLAT, least"), Measured(min(less))
    metric = "utilisation, FLAT less HIGH, least"
    yield ("Figure 12", "inter-arrival time 50 us and more", metric), Measured(-max(less))


def _figure_13(results: VineSimResults) -> Iterator[Item]:
    cpus = utilization_of("cpu-intel")
    for artifact, gap in (("Figure 13a", 7.0), ("Figure 13", 6.25), ("Figure 13b", 6.0)):
        key = (artifact, f"HIGH, inter-arrival time {gap:g} us", "utilisation of the CPUs")
        yield key, results.mean(Setup(gap), cpus)
    yield ("Figure 13c", "HIGH, inter-arrival time 0", "makespan"), results.mean(Setup(0), makespan)


def _figure_14(results: VineSimResults) -> Iterator[Item]:
    gaps = results.plan.fine_gaps
    ratios = {gap: results.ratio(_preferred_only(GPU, gap), Setup(gap)).value for gap in gaps}
    metric = "mean job latency, PREF (GPUs only) over HIGH, farthest from 1"
    easy = [ratio for gap, ratio in ratios.items() if gap >= 7]
    yield ("Figure 14a", "inter-arrival times of 7 us and more", metric), _farthest(easy)
    yield ("Figure 14a", "all loads", metric), _farthest(list(ratios.values()))
    key = ("Figure 14a", "PREF (GPUs only), inter-arrival time 0", "makespan")
    yield key, results.mean(_preferred_only(GPU, 0), makespan)
    used = [results.mean(_preferred_only(GPU, gap), utilization_of("cpu-intel")).value for gap in gaps]
    yield ("Figure 14c", "PREF (GPUs only)", "utilisation of the CPUs, largest at any load"), Measured(max(used))
    slow = [results.mean(_preferred_only(CPU, gap)).value for gap in gaps if gap >= 125]
    key = ("Figure 14b", "PREF (CPUs only), inter-arrival times of 125 us and more", "mean job latency, farthest from 500")
    yield key, Measured(max(slow, key=lambda value: abs(value - 500)))
    key = ("Figure 14b", "PREF (CPUs only), inter-arrival time 100 us", "mean job latency, less 500")
    yield key, _less(results.mean(_preferred_only(CPU, 100)), 500)
    key = ("Figure 14b", "inter-arrival time 1000 us", "mean job latency, PREF (CPUs only) over FLAT")
    yield key, results.ratio(_preferred_only(CPU, 1000), Setup(1000, policy="flat"))
    rates = Setup(0).affinity()
    yield (
        ("Section 8.7", "30M operations", "CPUs that do the work of one GPU"),
        Measured(float(rates[GPU, FP_GOOD] / rates[CPU, FP_GOOD])),
    )


def _table_4(results: VineSimResults) -> Iterator[Item]:
    """Measure Table 4: a task of 2.5 us whose data are one or three switches away; the table omits the 200 ns per switch."""
    for name, size in SIZES.items():
        for words, layout, switches in (("in the rack", NEAR_FAR[0], 1), ("across racks", NEAR_FAR[1], 3)):
            whole = results.mean(Setup(0, "single", layout=layout, data_size=size)).value - 2.5
            alone = Measured(whole - 0.2 * switches)
            yield ("Table 4", f"{name}, {words}", "transfer without switches"), alone
            if name == "8 KB":
                yield ("Table 4", f"{name}, {words}, as printed", "transfer without switches"), alone
            if name == "1 MB":
                yield ("Table 4", f"{name}, {words}", "transfer with switches"), Measured(whole)


def figure_16(results: VineSimResults) -> Iterator[Item]:
    """Measure Figure 16: data of three sizes on alternating units."""
    for tie in ("order", "random"):

        def at(size: int, policy: str, gap: float, tie: str = tie) -> Setup:
            return Setup(gap, layout="alternate", data_size=size, policy=policy, tie=tie)

        key = ("Figure 16a", f"8 KB, inter-arrival time 1000 us, ties {tie}")
        ratio = results.ratio(at(KB8, "closer_to_data", 1000), at(KB8, "high", 1000))
        yield (*key, "mean job latency, CLOSER_TO_DATA over HIGH, less 4"), _less(ratio, 4)
        ratio = results.ratio(at(KB64, "closer_to_data", 1000), at(KB64, "high", 1000))
        condition = f"64 KB, inter-arrival time 1000 us, ties {tie}"
        yield ("Figure 16b", condition, "mean job latency, CLOSER_TO_DATA over HIGH"), ratio
        for artifact, name, gap, times in (("Figure 16b", "64 KB", 50, 3), ("Figure 16c", "1 MB", 1000, 8)):
            ratio = results.ratio(at(SIZES[name], "high", gap), at(SIZES[name], "closer_to_data", gap))
            condition = f"{name}, inter-arrival time {gap} us, ties {tie}"
            yield (artifact, condition, f"mean job latency, HIGH over CLOSER_TO_DATA, less {times}"), _less(ratio, times)
        for name, size in SIZES.items():
            flat = at(size, "flat", 0, "order")
            means = [results.mean(setup).value for setup in (at(size, "high", 0), at(size, "closer_to_data", 0), flat)]
            metric = "largest over least mean job latency of the three policies"
            yield ("Figure 16", f"{name}, inter-arrival time 0, ties {tie}", metric), Measured(max(means) / min(means))
    busiest = results.mean(Setup(50, layout="alternate", data_size=MB1), utilization_of("overall"))
    yield ("Figure 16c", "1 MB, inter-arrival time 50 us, HIGH", "utilisation of all units"), busiest


def _figure_18(results: VineSimResults) -> Iterator[Item]:
    for tie in ("order", "random"):
        for small, large, data in (("Figure 18a", "Figure 18c", "all"), ("Figure 18d", "Figure 18f", "first rack")):
            for artifact, name, best in ((small, "8 KB", "high"), (large, "1 MB", "closer_to_data")):
                base = Setup(1000, layout="split", data_size=SIZES[name])
                base = replace(base, data="first rack") if data == "first rack" else base
                others = [policy for policy in ("high", "closer_to_data") if policy != best]
                setups = [replace(base, policy=policy, tie=tie) for policy in others] + [replace(base, policy="flat")]
                ratios = [results.ratio(setup, replace(base, policy=best, tie=tie)) for setup in setups]
                condition = f"{name}, inter-arrival time 1000 us, ties {tie}"
                metric = f"mean job latency, best other over {NAMES[best]}, less 1"
                yield (artifact, condition, metric), _less(min(ratios, key=lambda ratio: ratio.value), 1)
        for policy in NAMES:
            if policy == "flat" and tie == "random":
                continue
            near = Setup(0, layout="split", data="first rack", data_size=MB1, policy=policy, tie=tie)
            condition = f"1 MB, inter-arrival time 0, {NAMES[policy]}, ties {tie}"
            metric = "mean job latency, data on both racks over data near the CPUs"
            yield ("Figure 18f", condition, metric), results.ratio(_everywhere(near), near)
    near = Setup(0, layout="split", data="first rack", data_size=MB1)
    for artifact, words, setup in (
        ("Figure 18f", "data near the CPUs", near),
        ("Figure 18c", "data on both racks", _everywhere(near)),
    ):
        rate = mean_over_seeds(2500 / results.values(setup, makespan))
        yield (artifact, f"1 MB, {words}, inter-arrival time 0, HIGH", "tasks per us"), rate


def _preferred_only(kind: int, gap: float) -> Setup:
    return Setup(gap, policy="pref", preferred=kind)


def _everywhere(setup: Setup) -> Setup:
    return replace(setup, data="all")


def _less(value: Measured, amount: float) -> Measured:
    return Measured(value.value - amount, value.low - amount, value.high - amount)


def _farthest(ratios: list[float]) -> Measured:
    return Measured(max(ratios, key=lambda ratio: abs(ratio - 1)))


_PARTS: tuple[tuple[JobSet, Callable[[VineSimResults], Iterator[Item]]], ...] = (
    ("single", _tasks),
    ("thirty", _figure_4),
    ("sizes", _figure_5),
    ("sizes", _figure_6),
    ("sizes", figure_7),
    ("kernels", _figure_8),
    ("five", _figure_11),
    ("five", _figure_13),
    ("five", _figure_14),
    ("single", _table_4),
    ("five", figure_16),
    ("five", _figure_18),
)
