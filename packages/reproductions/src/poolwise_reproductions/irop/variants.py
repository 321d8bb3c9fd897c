"""Effects of single changes on the claims (latency, unknown workloads, interior point method), and the bound of Theorem 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from poolwise.presentation.table import Table
from poolwise_reproductions.criteria import Criterion, Measured
from poolwise_reproductions.irop.claims import View, above_optimum, figure_4, figure_5, figure_6, finite_mean
from poolwise_reproductions.irop.plan import PRIMARY, VARIANTS
from poolwise_reproductions.irop.runs import PUBLISHED_US
from poolwise_reproductions.published import Claim, Key
from poolwise_reproductions.results import KeyedRow

PLAIN = "Figure 1", f"latency {PUBLISHED_US:g} us"
"""Artifact and condition of the unchanged variant."""
THEOREM = "Theorem 1"
SOLVER = "Section IV-B"


def effects(view: View, artifact: str) -> Iterator[KeyedRow]:
    """Measure the claims on CFM and HEEP under each variant of an artifact; yield nothing unless theta is `PRIMARY`."""
    for condition, variant in VARIANTS[artifact].items() if view.theta == PRIMARY else ():
        varied = replace(view, grid=view.grid.varied, variant=variant)
        for key, value in (*figure_4(varied), *figure_5(varied), *figure_6(varied)):
            if _shown(key):
                yield (artifact, f"{condition}, {key[1]}", key[2]), value


def _shown(key: Key) -> bool:
    """Return whether the effect on a row is shown: the rows for single values of Delta and eta are omitted."""
    single = key[0] == "Figure 4" and (key[2].startswith("completion ratio of CFM") or "eta 0, Delta" in key[1])
    return not single and " of HEEP minus" not in key[2]


def solver(view: View) -> Iterator[KeyedRow]:
    """Measure the interior point method compared with the simplex method, and with OPT."""
    if view.theta != PRIMARY:
        return
    (condition, variant), *_ = VARIANTS[SOLVER].items()
    plain = replace(view, grid=view.grid.varied)
    inner = replace(plain, variant=variant)
    points = plain.points()

    def of(which: View, metric: str) -> np.ndarray:
        return np.array([which.value("irop", metric, *point) for point in points])

    size = f"{condition}, 150 x 1200, theta {view.theta}"
    apart = np.abs(of(inner, "bound") / of(plain, "bound") - 1)
    yield (SOLVER, size, "largest relative difference of the optimum of the relaxation"), Measured(float(apart.max()))
    for metric in ("objective", "energy"):
        less = 100 * (1 - of(inner, metric) / of(plain, metric)).mean(axis=0)
        yield (SOLVER, size, f"reduction of the {metric} of IRoP against the simplex method"), finite_mean(less)
    seconds = of(inner, "cpu_s")
    ratio = float(np.median(seconds / of(plain, "cpu_s")))
    yield (SOLVER, size, "median run time over that with the simplex method"), Measured(ratio)
    yield (SOLVER, size, "30 s minus the longest run of IRoP"), Measured(30 - float(seconds.max()))
    small = f"{condition}, 30 x 30, theta {view.theta}"
    for name, metric in (("slowdown", "completion"), ("energy", "energy")):
        yield (SOLVER, small, f"{name} of IRoP above OPT"), above_optimum(view, "irop", metric, variant)


def theorem_1(view: View) -> Iterator[KeyedRow]:
    """Measure the ratio of IRoP's energy to that of its relaxation, and compare it with the ratio psi of each problem."""
    condition = f"150 x 1200, eta 1, theta {view.theta}"
    ratio, psi = (np.array([_at_eta_1(view, each, t) for t in view.grid.tolerances]) for each in ("ratio", "psi"))
    yield (
        (THEOREM, condition, "psi minus IRoP's energy over that of its relaxation, minimum"),
        Measured(float((psi - ratio).min())),
    )
    yield (THEOREM, condition, "IRoP's energy over that of its relaxation, maximum"), Measured(float(ratio.max()))
    yield (THEOREM, condition, "psi, minimum"), Measured(float(psi.min()))
    if view.theta != PRIMARY:
        return
    above = max(above_optimum(view, "irop", metric).value for metric in ("completion", "energy"))
    least = min(view.runs[view.grid.small("irop", view.theta, seed)]["psi"] for seed in range(view.grid.small_seeds))
    metric = "excess that psi allows minus the larger excess of IRoP over OPT"
    yield (THEOREM, f"30 x 30, theta {view.theta}", metric), Measured(100 * (least - 1) - above)


def _at_eta_1(view: View, name: str, tolerance: float) -> np.ndarray:
    if name == "psi":
        return view.value("irop", "psi", tolerance, 1.0)
    ratios: np.ndarray = view.value("irop", "energy", tolerance, 1.0) / view.value("irop", "bound", tolerance, 1.0)
    return ratios


def verdicts(claims: Sequence[Claim], measured: Mapping[Key, Measured]) -> dict[tuple[str, str], dict[Key, str]]:
    """Return (artifact, condition) of each measured variant -> row of its claims -> verdict."""
    by_variant: dict[tuple[str, str], dict[Key, str]] = {}
    criteria: dict[Key, Criterion] = {claim.key: claim.criterion for claim in claims}
    for artifact, conditions in VARIANTS.items():
        for condition in conditions:
            for key, value in measured.items():
                if key[0] == artifact and key[1].startswith(f"{condition}, ") and criteria[key].rule != "shown":
                    plain = PLAIN[0], f"{PLAIN[1]}{key[1].removeprefix(condition)}", key[2]
                    if plain in criteria:
                        by_variant.setdefault((artifact, condition), {})[plain] = criteria[key].verdict(value)
    return by_variant


def table(claims: Sequence[Claim], measured: Mapping[Key, Measured]) -> list[Table]:
    """Return the table of the effects of the variants on the claims; empty without runs."""
    by_variant = verdicts(claims, measured)
    rows = list(dict.fromkeys(key for judged in by_variant.values() for key in judged))
    if not rows:
        return []
    cells = []
    for key in rows:
        line = [f"{key[2]} ({key[1].removeprefix(f'{PLAIN[1]}, ')})"]
        for (artifact, condition), judged in by_variant.items():
            value = measured[artifact, f"{condition}{key[1].removeprefix(PLAIN[1])}", key[2]].value
            line.append(f"{value:.3g}, {judged[key]}")
        cells.append(line)
    note = (
        "Each column changes one assumption; 5 us is the latency of the profiles, so that column changes nothing. The "
        "rules are those of the paper's claims, with fewer weights of energy and seeds. P^m is proportional to the latency "
        "(assumed)."
    )
    return [Table("Effect of single changes on the claims", ["claim", *(name for _, name in by_variant)], cells, note)]


def describe(claims: Sequence[Claim], measured: Mapping[Key, Measured]) -> list[str]:
    """Describe how many claims hold under each variant, and by how much Theorem 1 exceeds the ratio that IRoP attains."""
    by_variant = verdicts(claims, measured)
    texts = []
    if PLAIN in by_variant:
        plain = by_variant[PLAIN]
        counts = [f"{name}: {_changes(judged, plain)}" for (_, name), judged in by_variant.items() if (_, name) != PLAIN]
        held = sum(verdict == "holds" for verdict in plain.values())
        texts.append(
            f"Single changes: of {len(plain)} claims against CFM, HEEP and first fit, {held} hold with remote memory of "
            f"{PUBLISHED_US:g} us. {'; '.join(counts)}."
        )
    at = f"150 x 1200, eta 1, theta {PRIMARY}"
    pair = [
        measured.get((THEOREM, at, name)) for name in ("psi, minimum", "IRoP's energy over that of its relaxation, maximum")
    ]
    if pair[0] is not None and pair[1] is not None:
        bound_verdict = "The bound holds" if pair[1].value <= pair[0].value else "The bound does not hold"
        texts.append(
            f"Theorem 1 bounds the energy of IRoP by {pair[0].value:,.0f} times that of its relaxation; the measured ratio "
            f"is at most {pair[1].value:.3g}. {bound_verdict}; it is {pair[0].value / pair[1].value:,.0f} times the "
            "measured ratio."
        )
    return texts


def _changes(judged: Mapping[Key, str], plain: Mapping[Key, str]) -> str:
    """Describe how many claims hold under a variant, and how many it gains and loses."""
    both = [key for key in judged if key in plain]
    held = sum(judged[key] == "holds" for key in both)
    gained = sum(judged[key] == "holds" != plain[key] for key in both)
    lost = sum(plain[key] == "holds" != judged[key] for key in both)
    return f"{held} ({gained} more, {lost} no longer)"
