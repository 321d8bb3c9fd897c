"""Figures of the VineSim report drawn from our runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from poolwise.presentation.figure import Axis, Curves, Figure
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.results import RunMetric, bands
from poolwise_reproductions.vinesim.claims import NAMES, PERCENT
from poolwise_reproductions.vinesim.results import LATENCY, VineSimResults, utilization
from poolwise_reproductions.vinesim.setups import CPU, GPU, GPU_SHARES, KINDS, PLACES, SIZES, STRENGTHS, LargeJobs, Setup

LARGE: dict[LargeJobs, str] = {"five": "five very large jobs", "even": "large jobs of even size"}
LATENCY_AXIS, USE_AXIS = Axis("mean job latency (us)", log=True), Axis("utilization", limits=(0, 1))
FIVE_TASKS = "20 CPUs and 20 GPUs, 500 jobs of 5 tasks of 30M operations."

PANELS = {5: "abcdef", 7: "abcdef", 8: "ab", 13: "abc", 14: "abcd", 16: "abcdefghi", 18: "abcdef"}
"""Figure of the report -> its panels, each of which can be drawn alone."""


def over_gaps(
    results: VineSimResults, name: str, title: str, caption: str, gaps: Sequence[float], series: Mapping[str, Setup],
    metric: RunMetric = LATENCY, y_axis: Axis = LATENCY_AXIS,
) -> Curves:  # fmt: skip
    """Draw a metric of set-ups over the times between arrivals; the artifact is the figure that the title starts with."""
    lines = {line: [results.mean(replace(setup, gap=gap), metric) for gap in gaps] for line, setup in series.items()}
    artifact = " ".join(title.split(":")[0].split()[:2]) if title.startswith("Figure") else ""
    return Curves(name, title, caption, artifact=artifact, y_axis=y_axis, **_over_gaps(gaps, lines))


def _over_gaps(gaps: Sequence[float], lines: Mapping[str, Sequence[Measured]]) -> dict[str, Any]:
    """Return curves over the times between arrivals; 0 is drawn at the left end of the logarithmic axis."""
    least = min(gap for gap in gaps if gap > 0)
    decades = [10.0**k for k in range(7) if least <= 10.0**k <= max(gaps)]
    ticks = {least / 3: "0", **{gap: f"{gap:,.0f}" for gap in decades}}
    x_axis = Axis("time between arrivals (us)", log=True, ticks=ticks)
    bounded = {name: [replace(m, low=m.bounds[0], high=m.bounds[1]) for m in line] for name, line in lines.items()}
    return {"x": [gap if gap > 0 else least / 3 for gap in gaps], "x_axis": x_axis, **bands(bounded)}


def mixes(results: VineSimResults) -> Iterator[Figure]:
    """Draw Figure 4."""
    for letter, gap, words in (("a", 1000, "low load"), ("b", 0, "high load")):
        series = {}
        for good in (0.0, 0.3, 0.5, 0.7, 1.0):
            setups = [Setup(gap, "thirty", gpus, good=good) for gpus in GPU_SHARES.values()]
            series[f"{round(100 * good)} % FP_GOOD"] = [results.mean(setup).value for setup in setups]
        yield Curves(
            f"figure-4{letter}",
            f"Figure 4{letter}: deployments of 40 units, {words}",
            "500 jobs of 30 tasks under HIGH; all tasks of a job have the same type.",
            artifact=f"Figure 4{letter}",
            x=list(GPU_SHARES),
            series=series,
            x_axis=Axis("GPUs in the deployment (%)"),
            y_axis=LATENCY_AXIS,
        )


def types(results: VineSimResults) -> Iterator[Figure]:
    """Draw Figures 5 and 6."""
    for letter, gpus in zip("abcdef", (0, 8, 13, 26, 32, 40), strict=True):
        title, caption = f"Figure 5{letter}: {PERCENT[gpus]} % GPUs", "25,000 tasks of one type under HIGH."
        series = {name: Setup(0, "sizes", gpus, kind=kind) for name, kind in KINDS.items()}
        yield over_gaps(results, f"figure-5{letter}", title, caption, results.plan.gaps, series)
    title, caption = "Figure 6: 100 % GPUs, approaching zero load", "25,000 tasks of one type under HIGH."
    series = {name: Setup(0, "sizes", 40, kind=kind) for name, kind in KINDS.items()}
    yield over_gaps(results, "figure-6", title, caption, results.plan.light_gaps, series)


def strengths(results: VineSimResults) -> Iterator[Figure]:
    """Draw Figure 7."""
    for letter, gpus in zip("abcdef", (8, 13, 20, 26, 32, 40), strict=True):
        caption = "FP_GOOD tasks; 15 to 1 both as 1,500,000 and as the printed 15,000,000."
        title = f"Figure 7{letter}: {PERCENT[gpus]} % GPUs of different strength"
        series = {name: Setup(0, "sizes", gpus, gpu_int=strength) for name, strength in STRENGTHS.items()}
        yield over_gaps(results, f"figure-7{letter}", title, caption, results.plan.gaps, series)


def load_axis(results: VineSimResults) -> Iterator[Figure]:
    """Draw the factors of Figure 5 over the load, which the report does not state, for two distributions of large jobs."""
    gaps = results.plan.gaps
    for share, gpus, printed in ((20, 8, 10.0), (100, 40, 1000.0)):
        lines = {}
        for kind, large in itertools.product(("INT", "FP_GOOD"), LARGE):
            at = partial(Setup, jobs="sizes", kind=KINDS[kind], large=large)
            lines[f"{kind}, {LARGE[large]}"] = [results.ratio(at(gap, gpus=0), at(gap, gpus=gpus)) for gap in gaps]
        yield Curves(
            f"load-axis-{share}",
            f"Load axis: how much faster jobs are with {share} % GPUs than with none",
            "The workload of Figure 5; the report does not state its low load.",
            y_axis=Axis("mean job latency, 0 % GPUs over this share", log=True),
            target=(printed, f"the report at low load: {printed:,.0f}"),
            **_over_gaps(gaps, lines),
        )


def kernels(results: VineSimResults) -> Iterator[Figure]:
    """Draw Figure 8."""
    names = {"mixed": "mixed", "dfe": "DFE", "phi": "PHI", "gpu": "GPU"}
    series = {name: Setup(0, "kernels", neurasmus=units) for units, name in names.items()}
    caption = "2,500 SGJ, RGJ and NGJ kernels, equally likely, under HIGH; 30 accelerators and 10 CPUs that run no kernels."
    gaps, share = results.plan.kernel_gaps, Axis("utilization of all units", limits=(0, 1))
    yield over_gaps(results, "figure-8a", "Figure 8a: Neurasmus kernels", caption, gaps, series)
    yield over_gaps(results, "figure-8b", "Figure 8b: use of the deployments", caption, gaps, series, utilization, share)


def policies(results: VineSimResults) -> Iterator[Figure]:
    """Draw Figures 11, 12 and 14."""
    gaps, both = results.plan.fine_gaps, {"HIGH": Setup(0), "FLAT": Setup(0, policy="flat")}
    only = {kind: Setup(0, policy="pref", preferred=kind) for kind in (CPU, GPU)}
    yield over_gaps(results, "figure-11", "Figure 11: HIGH against FLAT", FIVE_TASKS, gaps, both)
    title = "Figure 12: use of all units"
    yield over_gaps(results, "figure-12", title, FIVE_TASKS, gaps, both, utilization, USE_AXIS)
    for letter, kind, name in (("a", GPU, "GPUs only"), ("b", CPU, "CPUs only")):
        title, series = f"Figure 14{letter}: PREF, {name}", {**both, f"PREF ({name})": only[kind]}
        yield over_gaps(results, f"figure-14{letter}", title, FIVE_TASKS, gaps, series)
    series = {**both, "PREF (GPUs only)": only[GPU]}
    for letter, unit, name in (("c", "cpu-intel", "CPUs"), ("d", "gpu", "GPUs")):
        title, use = f"Figure 14{letter}: use of the {name}", partial(utilization, unit=unit)
        yield over_gaps(results, f"figure-14{letter}", title, FIVE_TASKS, gaps, series, use, USE_AXIS)


def samples(results: VineSimResults) -> Iterator[Figure]:
    """Draw Figure 13."""
    for letter, gap in zip("abc", (7, 6, 0), strict=True):
        series = results.measurements[Setup(gap, sample=10)]["series"]
        yield Curves(
            f"figure-13{letter}",
            f"Figure 13{letter}: use over time under HIGH, {gap} us between arrivals",
            "Sampled every 10 us.",
            artifact=f"Figure 13{letter}",
            x=series["begin_us"],
            series={"CPUs": series["by_type"]["cpu-intel"], "GPUs": series["by_type"]["gpu"]},
            x_axis=Axis("time (us)"),
            y_axis=USE_AXIS,
        )


def data(results: VineSimResults) -> Iterator[Figure]:
    """Draw Figures 16 and 18."""
    gaps = results.plan.data_gaps
    for (layout, place), (number, letters) in zip(PLACES, (("16", "abc"), ("18", "abc"), ("18", "def")), strict=True):
        for letter, (name, size) in zip(letters, SIZES.items(), strict=True):
            at = partial(Setup, 0, layout=layout, data=place, data_size=size)
            caption = f"Two racks, {'alternating units' if number == '16' else 'CPUs and GPUs in separate racks'}."
            title = f"{name}, {'data everywhere' if place == 'all' else 'data near the CPUs'}"
            three = {label: at(policy=policy) for policy, label in NAMES.items()}
            ties = {f"{NAMES[p]}, ties random": at(policy=p, tie="random") for p in ("high", "closer_to_data")}
            panel = f"{number}{letter}"
            yield over_gaps(results, f"figure-{panel}", f"Figure {panel}: {title}", caption, gaps, {**three, **ties})
            for unit, units, shift in (("gpu", "GPUs", 3), ("cpu-intel", "CPUs", 6)) if number == "16" else ():
                panel = f"16{chr(ord(letter) + shift)}"  # Figures 16d to 16i
                use, words = partial(utilization, unit=unit), f"Figure {panel}: {title}, use of the {units}"
                yield over_gaps(results, f"figure-{panel}", words, caption, gaps, three, use, USE_AXIS)
