"""Reproduction of VineSim: every claim is measured, and the set-ups match the report."""

import numpy as np
import pytest

from poolwise.runner import Local
from poolwise_reproductions import catalog
from poolwise_reproductions.cases import Measurer
from poolwise_reproductions.claims_file import read_claims
from poolwise_reproductions.published import SWITCH, compare
from poolwise_reproductions.reproduction import switches_of
from poolwise_reproductions.results import without_nan
from poolwise_reproductions.vinesim import PARTS, changes, claims, extensions
from poolwise_reproductions.vinesim.plan import QUICK, VineSimPlan
from poolwise_reproductions.vinesim.results import VineSimResults, mean_over_seeds
from poolwise_reproductions.vinesim.setups import KB64, MB1, Setup, mixed_sizes


def content(setup: Setup) -> dict:
    """Return metrics that depend on the set-up alone, so that ratios and intervals are defined."""
    value = 100.0 + setup.gap % 7 + setup.gpus + 3 * setup.seed
    series = {"begin_us": [0.0], "by_type": {"cpu-intel": [0.0], "gpu": [1.0]}}
    return {
        "mean_job_latency_us": value,
        "makespan_s": value / 1e6,
        "unit_utilization": 0.5,
        "unit_utilization_by_type.cpu-intel": 0.25,
        "unit_utilization_by_type.gpu": 0.75,
        "energy_j": 1.0,
        "measured_tasks": 2,
        "series": series,
    }


def results_of(plan: VineSimPlan, run=content) -> VineSimResults:
    """Return the results of every set-up of a plan, measured by a fake run."""
    setups = (seeded for part in PARTS for setup in part.cases(plan) for seeded in plan.seeded(setup))
    return VineSimResults({setup: run(setup) for setup in setups}, plan)


@pytest.mark.parametrize("plan", [QUICK, VineSimPlan()], ids=["quick", "full"])
def test_measurements_match_the_claims(plan: VineSimPlan) -> None:
    results = results_of(plan)
    measured = without_nan(row for part in PARTS for rows in part.rows for row in rows(results))
    rows = compare(read_claims(catalog.find("claims", "vinesim.csv")), measured)
    missing = [row.claim.key for row in rows if row.holds == "not_measured"]
    assert missing == [("Figure 8a", "crossover", "time between arrivals below which DFE alone beats the mix")]
    drawn = [figure for part in PARTS for draw in part.draw for figure in draw(results)]
    drawn += extensions.draw(results)
    assert len({figure.name for figure in drawn}) == len(drawn)
    assert [table.title for table in extensions.tables(results)]


def test_mixed_workload_has_25000_tasks() -> None:
    for seed in range(5):
        sizes = mixed_sizes(seed)
        assert (len(sizes), int(sizes.sum())) == (500, 25_000)
        assert int((sizes <= 20).sum()) == 450
    assert not np.array_equal(mixed_sizes(0), mixed_sizes(1))


@pytest.mark.parametrize("seed", range(5))
def test_workload_with_even_large_jobs_has_25000_tasks(seed: int) -> None:
    sizes = np.sort(mixed_sizes(seed, "even"))
    assert (len(sizes), int(sizes.sum())) == (500, 25_000)
    assert int((sizes <= 20).sum()) == 450
    assert sizes[-1] <= 3.1 * sizes[450]
    assert mixed_sizes(seed).max() > 3 * sizes[-1]


def test_varied_tasks_differ_by_at_most_the_share() -> None:
    plain, varied = (Setup(0, data_size=MB1, varied=share).tasks().table for share in (0.0, 0.05))
    assert set(plain[:, 4].tolist()) == {30_000_000}
    assert np.abs(varied[:, 4] / 30_000_000 - 1).max() <= 0.05 and len(set(varied[:, 4].tolist())) > 2000
    assert np.array_equal(np.delete(plain, 4, axis=1), np.delete(varied, 4, axis=1))


def test_every_switch_that_a_claim_names_measures_it() -> None:
    by_switch = switches_of(PARTS, results_of(VineSimPlan()))
    named = 0
    for claim in read_claims(catalog.find("claims", "vinesim.csv")):
        if claim.shown_by.startswith(SWITCH):
            assert claim.key in by_switch[claim.shown_by.removeprefix(SWITCH)], claim.shown_by
            named += 1
    assert named >= 8


def test_switch_looks_up_the_changed_set_ups() -> None:
    """Latencies without and with GPUs are 1000 and 10 us if large jobs are even, and 10 us otherwise."""

    def fake_content(setup: Setup) -> dict:
        slow = setup.large == "even" and setup.gpus == 0
        return content(setup) | {"mean_job_latency_us": 1000.0 if slow else 10.0}

    results = results_of(VineSimPlan(), fake_content)
    key = ("Load axis", "INT", "mean job latency, 0 % over 100 % GPUs, nearest to the report's at any load")
    assert dict(claims.figure_5(results))[key].value == 1.0
    assert changes.size_switches(results)[changes.EVEN][key].value == 100.0
    key = ("Figure 5f", "INT, low load", "mean job latency, 0 % over 100 % GPUs")
    assert changes.size_switches(results)[changes.EVEN][key].value == 100.0


def verdicts(latency) -> dict:
    """Return condition and metric -> verdict of the claims of a quick plan with fake latencies, us."""
    results = results_of(QUICK, lambda setup: content(setup) | {"mean_job_latency_us": latency(setup)})
    functions = (claims.figure_5, claims.figure_7, claims.figure_8, claims.figure_11, claims.figure_16, claims.figure_18)
    measured = without_nan(row for rows in (*functions, claims.transfers) for row in rows(results))
    rows = compare(read_claims(catalog.find("claims", "vinesim.csv")), measured)
    return {row.claim.key: row.verdict for row in rows}


@pytest.mark.parametrize(
    ("at_100_us", "at_30000_us", "load", "held"), [(10, 3, 100, 2), (3, 10, 30_000, 2), (10, 10, 30_000, 2), (3, 3, 30_000, 0)]
)
def test_one_load_serves_every_factor_of_section_7_2(at_100_us, at_30000_us, load, held) -> None:
    """20 % GPUs divide the latency by the given factors; only the two tenfold factors of these GPUs can hold."""
    factor = {0: 1, 100: at_100_us, 30_000: at_30000_us}

    def latency(setup: Setup) -> float:
        return 100.0 / factor.get(setup.gap, 1) if setup.gpus == 8 else 100.0

    results = results_of(QUICK, lambda setup: content(setup) | {"mean_job_latency_us": latency(setup)})
    assert claims.low_load(results) == (load, held)
    rows = {key: value for key, value in claims.figure_5(results) if "low load" in key[1]}
    assert {value.note for value in rows.values()} == {f"at {load:,} us between arrivals"} and len(rows) == 7
    assert rows["Figure 5b", "INT, low load", "mean job latency, 0 % over 20 % GPUs"].value == factor[load]


def test_tolerance_of_the_factors_is_that_of_the_claims_file() -> None:
    section_claims = [claim for claim in read_claims(catalog.find("claims", "vinesim.csv")) if claim.place == "section 7.2"]
    factors = {claim.tolerance for claim in section_claims if claim.published in (10, 1000)}
    assert factors == {claims.FACTOR_TOLERANCE} and len({(over, under) for _, over, under, _ in claims.FACTORS}) == 3


@pytest.mark.parametrize(
    ("latencies", "ranked", "mixed"),
    [
        ({"mixed": 1, "dfe": 2, "phi": 3, "gpu": 4}, "holds", "holds"),
        ({"mixed": 1, "dfe": 2, "phi": 4, "gpu": 3}, "fails", "holds"),
        ({"mixed": 3, "dfe": 2, "phi": 3, "gpu": 4}, "holds", "fails"),
    ],
)
def test_ranking_of_kernels_is_one_row(latencies, ranked, mixed) -> None:
    judged = verdicts(lambda setup: latencies.get(setup.neurasmus, 1.0))
    metric = "mean job latency, phi over dfe and gpu over phi, minimum, minus 1"
    assert judged["Figure 8a", "every load", metric] == ranked
    assert judged["Figure 8a", "every load", "mean job latency, dfe over mixed, minimum, minus 1"] == mixed


@pytest.mark.parametrize(("gap", "verdict"), [(30, "holds"), (6, "fails")])
def test_dip_of_flat_is_judged_at_the_printed_time(gap, verdict) -> None:
    judged = verdicts(lambda setup: 50.0 if setup.gap == gap else 100.0)
    assert judged["Figure 11", "FLAT", "time between arrivals with the lowest mean job latency"] == verdict


@pytest.mark.parametrize(("exponent", "verdict"), [(1, "holds"), (0, "fails"), (-1, "fails")])
def test_share_of_transfers_must_rise_with_every_strength(exponent, verdict) -> None:
    """Latency with data is that without, times the strength of the GPU to a power."""
    judged = verdicts(lambda setup: (setup.gpu_int / 1e5) ** exponent if setup.data_size else 1.0)
    assert {judged[key] for key in judged if key[0] == "Abstract"} == {verdict}


@pytest.mark.parametrize(("closer", "verdict"), [(3.0, "holds"), (0.5, "fails")])
def test_high_is_the_fastest_with_small_data_without_a_threshold_of_ours(closer, verdict) -> None:
    judged = verdicts(lambda setup: {"high": 1.0, "flat": 3.0}.get(setup.policy, closer))
    where = ("Figure 16a", "8 KB, inter-arrival time 1000 us, ties order")
    assert judged[(*where, "mean job latency, best other over HIGH, minus 1")] == verdict
    assert judged[(*where, "mean job latency, CLOSER_TO_DATA over FLAT")] == verdict


def test_data_near_the_cpus_are_in_their_rack() -> None:
    table = Setup(0, layout="split", data="first rack", data_size=MB1).tasks().table
    assert set(table[:, 2].tolist()) == {0}
    everywhere = Setup(0, layout="split", data_size=MB1).tasks().table
    assert set(everywhere[:, 2].tolist()) == {0, 1}


def test_high_reaches_gpu_latency_and_flat_does_not() -> None:
    assert Setup(1000).measure()["mean_job_latency_us"] == 25.0
    assert Setup(1000, policy="flat").measure()["mean_job_latency_us"] > 400.0


def test_high_and_closer_to_data_are_equal_at_64_kb() -> None:
    high, closer = (Setup(1000, layout="alternate", data_size=KB64, policy=p) for p in ("high", "closer_to_data"))
    latency = {setup.policy: setup.measure()["mean_job_latency_us"] for setup in (high, closer)}
    assert 0.9 < latency["high"] / latency["closer_to_data"] < 1.1


def test_cached_set_ups_are_not_run_again(tmp_path, monkeypatch) -> None:
    ran: list[float] = []
    measure = Measurer(tmp_path, Local(1))

    def count(setup: Setup) -> dict:
        ran.append(setup.gap)
        return {"value": setup.gap}

    monkeypatch.setattr(Setup, "measure", count)
    assert measure([Setup(1), Setup(2), Setup(1)])[Setup(2)] == {"value": 2}
    measure([Setup(1), Setup(3)])
    assert ran == [1, 2, 3]


def test_equal_values_have_no_interval() -> None:
    assert np.isnan(mean_over_seeds(np.array([5.0, 5.0])).low)
    assert mean_over_seeds(np.array([4.0, 6.0])).low < 4


def test_tasks_that_wait_for_the_first_of_their_job_double_the_latency_on_gpus() -> None:
    """A task of 3M operations takes 2.5 us on a GPU; 29 more follow once it has ended."""
    alone, forked = (Setup(1000, "thirty", 32, good=1.0, graph=graph) for graph in ("", "fork"))
    assert [setup.measure()["mean_job_latency_us"] for setup in (alone, forked)] == [2.5, 5.0]
