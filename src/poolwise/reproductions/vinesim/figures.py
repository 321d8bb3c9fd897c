"""Figures of the VineSim report drawn from our runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from poolwise.presentation.figure import Axis, Curves, Figure
from poolwise.reproductions.vinesim.claims import KINDS, NAMES, PERCENT, SIZES
from poolwise.reproductions.vinesim.results import MetricOf, VineSimResults, mean_job_latency, utilization_of
from poolwise.reproductions.vinesim.setups import CPU, GPU, GPU_SHARES, PLACES, STRENGTHS, JobSet, LargeJobs, Setup

LARGE: dict[LargeJobs, str] = {"five": "five very large jobs", "even": "large jobs of even size"}
LATENCY = Axis("mean job latency (us)", log=True)


def draw(results: VineSimResults, jobs: JobSet | None = None) -> list[Figure]:
    """Draw Figures 4 to 8, 11 to 14, 16 and 18, or those of one set of jobs."""
    drawn = [figure for of, part in _PARTS if jobs in (None, of) for figure in part(results)]
    return [replace(figure, artifact=_artifact(figure.title)) for figure in drawn]


def _artifact(title: str) -> str:
    """Return the figure of the report that a title starts with."""
    words = title.split(":")[0].split()
    return " ".join(words[:2]) if words[0] == "Figure" else ""


def over_gaps(
    results: VineSimResults,
    figure: Curves,
    gaps: Sequence[float],
    series: dict[str, Callable[[float], Setup]],
    metric: MetricOf = mean_job_latency,
    y_axis: Axis = LATENCY,
) -> Curves:
    """Fill in curves over the times between arrivals; 0 is drawn at the left end of the logarithmic axis."""
    least = min(gap for gap in gaps if gap > 0)
    x = [gap if gap > 0 else least / 3 for gap in gaps]
    found = {name: results.curve([at(gap) for gap in gaps], metric) for name, at in series.items()}
    ticks = {least / 3: "0", **{gap: f"{gap:,.0f}" for gap in _decades(gaps)}}
    return replace(
        figure,
        x=x,
        series={name: means for name, (means, _) in found.items()},
        interval={name: bounds for name, (_, bounds) in found.items()},
        x_axis=Axis("time between arrivals (us)", log=True, ticks=ticks),
        y_axis=y_axis,
    )


def _decades(gaps: Sequence[float]) -> list[float]:
    return [10.0**k for k in range(7) if min(gap for gap in gaps if gap) <= 10.0**k <= max(gaps)]


def _mixes(results: VineSimResults) -> Iterator[Figure]:
    shares = list(GPU_SHARES)
    for letter, gap, words in (("a", 1000, "low load"), ("b", 0, "high load")):
        series = {}
        for good in (0.0, 0.3, 0.5, 0.7, 1.0):
            setups = [Setup(gap, "thirty", gpus, good=good) for gpus in GPU_SHARES.values()]
            series[f"{round(100 * good)} % FP_GOOD"] = results.curve(setups)[0]
        yield Curves(
            f"figure-4{letter}",
            f"Figure 4{letter}: deployments of 40 units, {words}",
            "500 jobs of 30 tasks under HIGH; all tasks of a job have the same type.",
            x=shares,
            series=series,
            x_axis=Axis("GPUs in the deployment (%)"),
            y_axis=LATENCY,
        )


def _types(results: VineSimResults) -> Iterator[Figure]:
    for letter, gpus in zip("abcdef", (0, 8, 13, 26, 32, 40), strict=True):

        def at(kind: int, gpus: int = gpus) -> Callable[[float], Setup]:
            return lambda gap: Setup(gap, "sizes", gpus, kind=kind)

        figure = Curves(
            f"figure-5{letter}", f"Figure 5{letter}: {PERCENT[gpus]} % GPUs", "25,000 tasks of one type under HIGH."
        )
        yield over_gaps(results, figure, results.plan.gaps, {name: at(kind) for name, kind in KINDS.items()})

    def light(kind: int) -> Callable[[float], Setup]:
        return lambda gap: Setup(gap, "sizes", 40, kind=kind)

    figure = Curves("figure-6", "Figure 6: 100 % GPUs, approaching zero load", "The workload of Figure 5.")
    yield over_gaps(results, figure, results.plan.light_gaps, {name: light(kind) for name, kind in KINDS.items()})


def _strengths(results: VineSimResults) -> Iterator[Figure]:
    for letter, gpus in zip("abcdef", (8, 13, 20, 26, 32, 40), strict=True):

        def at(strength: float, gpus: int = gpus) -> Callable[[float], Setup]:
            return lambda gap: Setup(gap, "sizes", gpus, gpu_int=strength)

        caption = "FP_GOOD tasks; 15 to 1 both as 1,500,000 and as the printed 15,000,000."
        figure = Curves(f"figure-7{letter}", f"Figure 7{letter}: {PERCENT[gpus]} % GPUs of different strength", caption)
        yield over_gaps(results, figure, results.plan.gaps, {name: at(value) for name, value in STRENGTHS.items()})


def _load_axis(results: VineSimResults) -> Iterator[Figure]:
    """Draw the factors of Figure 5 over the load, which the report does not state, for two distributions of large jobs."""
    gaps = results.plan.gaps
    least = min(gap for gap in gaps if gap > 0)
    for share, gpus, printed in ((20, 8, 10.0), (100, 40, 1000.0)):
        series: dict[str, list[float]] = {}
        interval: dict[str, tuple[list[float], list[float]]] = {}
        for kind, large in itertools.product(("INT", "FP_GOOD"), LARGE):
            base = Setup(0, "sizes", kind=KINDS[kind], large=large)
            found = [results.ratio(replace(base, gap=gap, gpus=0), replace(base, gap=gap, gpus=gpus)) for gap in gaps]
            name = f"{kind}, {LARGE[large]}"
            series[name] = [factor.value for factor in found]
            interval[name] = [factor.bounds[0] for factor in found], [factor.bounds[1] for factor in found]
        yield Curves(
            f"load-axis-{share}",
            f"Load axis: how much faster jobs are with {share} % GPUs than with none",
            "The workload of Figure 5; the report does not state its low load.",
            x=[gap if gap > 0 else least / 3 for gap in gaps],
            series=series,
            interval=interval,
            x_axis=Axis(
                "time between arrivals (us)", log=True, ticks={least / 3: "0", **{g: f"{g:,.0f}" for g in _decades(gaps)}}
            ),
            y_axis=Axis("mean job latency, 0 % GPUs over this share", log=True),
            target=(printed, f"the report at low load: {printed:,.0f}"),
        )


def _kernels(results: VineSimResults) -> Iterator[Figure]:
    names = {"mixed": "mixed", "dfe": "DFE", "phi": "PHI", "gpu": "GPU"}

    def at(units: str) -> Callable[[float], Setup]:
        return lambda gap: Setup(gap, "kernels", neurasmus=units)

    series = {name: at(units) for units, name in names.items()}
    caption = "2,500 SGJ, RGJ and NGJ kernels, equally likely, under HIGH; 30 accelerators and 10 CPUs that run no kernels."
    figure = Curves("figure-8a", "Figure 8a: Neurasmus kernels", caption)
    yield over_gaps(results, figure, results.plan.kernel_gaps, series)
    figure = Curves("figure-8b", "Figure 8b: use of the deployments", caption)
    share = Axis("utilization of all units", limits=(0, 1))
    yield over_gaps(results, figure, results.plan.kernel_gaps, series, utilization_of("overall"), share)


def _policies(results: VineSimResults) -> Iterator[Figure]:
    gaps = results.plan.fine_gaps

    def at(policy: str) -> Callable[[float], Setup]:
        return lambda gap: Setup(gap, policy=policy)

    def only(kind: int) -> Callable[[float], Setup]:
        return lambda gap: Setup(gap, policy="pref", preferred=kind)

    both = {"HIGH": at("high"), "FLAT": at("flat")}
    caption = "20 CPUs and 20 GPUs, 500 jobs of 5 tasks of 30M operations."
    share = Axis("utilization", limits=(0, 1))
    yield over_gaps(results, Curves("figure-11", "Figure 11: HIGH against FLAT", caption), gaps, both)
    figure = Curves("figure-12", "Figure 12: use of all units", caption)
    yield over_gaps(results, figure, gaps, both, utilization_of("overall"), share)
    for letter, kind, name in (("a", GPU, "GPUs only"), ("b", CPU, "CPUs only")):
        figure = Curves(f"figure-14{letter}", f"Figure 14{letter}: PREF, {name}", caption)
        yield over_gaps(results, figure, gaps, {**both, f"PREF ({name})": only(kind)})
    for letter, unit, name in (("c", "cpu-intel", "CPUs"), ("d", "gpu", "GPUs")):
        figure = Curves(f"figure-14{letter}", f"Figure 14{letter}: use of the {name}", caption)
        yield over_gaps(results, figure, gaps, {**both, "PREF (GPUs only)": only(GPU)}, utilization_of(unit), share)


def _series(results: VineSimResults) -> Iterator[Figure]:
    for letter, gap in zip("abc", (7, 6, 0), strict=True):
        series = results.contents[Setup(gap, sample=10)]["series"]
        yield Curves(
            f"figure-13{letter}",
            f"Figure 13{letter}: use over time under HIGH, {gap} us between arrivals",
            "Sampled every 10 us.",
            x=series["begin_us"],
            series={"CPUs": series["by_type"]["cpu-intel"], "GPUs": series["by_type"]["gpu"]},
            x_axis=Axis("time (us)"),
            y_axis=Axis("utilization", limits=(0, 1)),
        )


def _data(results: VineSimResults) -> Iterator[Figure]:
    panels = {PLACES[0]: ("16", "abc"), PLACES[1]: ("18", "abc"), PLACES[2]: ("18", "def")}
    gaps = results.plan.data_gaps
    for (layout, data), (number, letters) in panels.items():
        for letter, (name, size) in zip(letters, SIZES.items(), strict=True):
            base = Setup(0, layout=layout, data=data, data_size=size)

            def at(policy: str, tie: str = "order", base: Setup = base) -> Callable[[float], Setup]:
                return lambda gap: replace(base, gap=gap, policy=policy, tie=tie)

            where = "alternating units" if number == "16" else "CPUs and GPUs in separate racks"
            spot = "data everywhere" if data == "all" else "data near the CPUs"
            series = {label: at(policy) for policy, label in NAMES.items()}
            series |= {f"{NAMES[policy]}, ties random": at(policy, "random") for policy in ("high", "closer_to_data")}
            figure = Curves(f"figure-{number}{letter}", f"Figure {number}{letter}: {name}, {spot}", f"Two racks, {where}.")
            yield over_gaps(results, figure, gaps, series)
            if number == "16":
                yield from _use(results, figure, gaps, {label: at(policy) for policy, label in NAMES.items()})


def _use(
    results: VineSimResults, figure: Curves, gaps: Sequence[float], series: dict[str, Callable[[float], Setup]]
) -> Iterator[Figure]:
    """Draw Figures 16d to 16i: use of GPUs and CPUs."""
    letter = figure.name[-1]
    for unit, name, shift in (("gpu", "GPUs", 3), ("cpu-intel", "CPUs", 6)):
        other = chr(ord(letter) + shift)
        title = figure.title.replace(f"16{letter}", f"16{other}") + f", use of the {name}"
        panel = Curves(f"figure-16{other}", title, figure.caption)
        yield over_gaps(results, panel, gaps, series, utilization_of(unit), Axis("utilization", limits=(0, 1)))


_PARTS: tuple[tuple[JobSet, Callable[[VineSimResults], Iterator[Figure]]], ...] = (
    ("thirty", _mixes),
    ("sizes", _types),
    ("sizes", _strengths),
    ("sizes", _load_axis),
    ("kernels", _kernels),
    ("five", _policies),
    ("five", _series),
    ("five", _data),
)
