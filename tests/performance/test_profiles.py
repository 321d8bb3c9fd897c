"""Memory profiles: the curve, its inverse, invalid knots, and fits to measurements."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from poolwise.errors import InputError, UnknownNameError
from poolwise.performance import fitting
from poolwise.performance.fitting import CompletionTimes, fit, read_measurements, to_csv
from poolwise.performance.profiles import Profile, find_profile, read_profiles, shipped_profiles
from tests.helpers.data import PUBLISHED

SHARES = np.array([0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75])


@st.composite
def curves(draw, convex=False):
    slopes = draw(st.lists(st.floats(0, 8), min_size=3, max_size=3))
    if convex:
        slopes = sorted(slopes)
    values = np.concatenate([[0.0], np.cumsum(np.array(slopes) * 0.25)])
    return Profile("p", (0, 0.25, 0.5, 0.75), tuple(values.tolist()))


@given(curves(), st.floats(0, 7))
@example(Profile("p", (0, 0.25, 0.5, 0.75), (0, 0, 0, 2.78e-309)), 2.0)
def test_inverse_is_the_largest_fraction_within_a_slowdown(profile, slowdown):
    share = float(profile.largest_remote(slowdown))
    grid = np.linspace(0, 0.75, 301)
    assert profile.at(share) <= slowdown + 1e-9
    assert share >= grid[profile.at(grid) <= slowdown].max() - 1e-9
    assert np.isnan(profile.largest_remote(-0.1))


def test_shipped_profiles_match_the_papers():
    profiles = shipped_profiles()
    assert float(profiles["kmeans"].at(0.75)) == 3.0
    assert float(profiles["hpcg"].at(0.75)) == 2.5
    assert max(float(profiles[n].at(0.75)) for n in ("spark_wordcount", "hadoop_wordcount")) < 0.5
    assert all("read off the figure" in profiles[n].source for n in ("kmeans", "hpcg"))
    assert [n for n, p in profiles.items() if n.startswith("cfm_") and p.is_convex] == ["cfm_kmeans"]
    assert not profiles["cfm_quicksort"].is_monotone
    lines = (PUBLISHED / "cfm_profiles.csv").read_text().splitlines()
    header = lines[0].split(",")
    for line in lines[1:]:
        row = dict(zip(header, line.split(","), strict=True))
        base = float(row["runtime_s_at_local_ratio_1.0"])
        for local in ("0.9", "0.8", "0.7", "0.6", "0.5", "0.4"):
            if row[local]:
                ours = float(profiles[f"cfm_{row['workload']}"].at(1 - float(local)))
                assert ours == pytest.approx(float(row[local]) / base - 1, abs=1e-6)


@pytest.mark.parametrize(
    ("remote", "slowdown"),
    [
        ((0, 0.5), (0,)),
        ((0.1, 0.5), (0, 1)),
        ((0, 0.5), (0.1, 1)),
        ((0, 0.5, 0.4), (0, 1, 2)),
        ((0, 1.0), (0, 1)),
        ((0, 0.5), (0, -2)),
    ],
)
def test_invalid_knots_are_rejected(remote, slowdown):
    with pytest.raises(InputError, match="profile 'bad'"):
        Profile("bad", remote, slowdown)


def test_unknown_profile_error_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'kmeans'"):
        find_profile("kmean")


@settings(deadline=None)
@given(seconds=st.lists(st.floats(0.1, 1e4), min_size=4, max_size=4))
@example(seconds=[2.25198, 23.623, 58.3727, 61.0768])
def test_fitted_profile_is_still_convex_after_a_round_trip(seconds, tmp_path_factory):
    measured = CompletionTimes("one", np.array([0.0, 0.25, 0.5, 0.75]), np.ones(4), np.array(seconds))
    file = tmp_path_factory.mktemp("fit") / "profiles.csv"
    file.write_text(to_csv([fit(measured).profile]))
    read = read_profiles(file)["one"]
    assert read.is_convex and read.is_monotone


@given(curves(convex=True))
def test_fit_recovers_a_convex_curve_from_its_points(profile):
    fitted = fit(CompletionTimes("p", SHARES, np.ones(7), 10 * (1 + profile.at(SHARES))))
    assert np.abs(fitted.profile.at(SHARES) - profile.at(SHARES)).max() < 1e-6
    assert fitted.errors.most < 1e-12
    assert fitted.profile.is_convex


@settings(deadline=None)
@given(st.lists(st.floats(5, 40), min_size=7, max_size=7), st.integers(1, 3), st.booleans())
def test_fits_are_monotone_and_convex_if_requested_and_no_worse_than_scaled_ones(seconds, pieces, convex):
    measured = CompletionTimes("p", SHARES, np.ones(7), np.array(seconds))
    fitted = fit(measured, pieces, convex=convex)
    assert fitted.profile.is_monotone
    assert fitted.profile.is_convex or not convex
    assert fitted.errors.least <= fitted.errors.mean <= fitted.errors.most
    assert fitted.extra >= 0
    slowdown = measured.seconds / measured.seconds[0] - 1
    for scale in (0.9, 1.1):  # the best curve is at least as good as a scaled one
        other = scale * fitted.profile.at(SHARES) - slowdown
        assert fitted.errors.mean <= float((other**2).mean()) + 1e-9
    if pieces == 3:
        assert fitted.errors.mean <= fit(measured, 1, convex=convex).errors.mean + 1e-9


def test_frequency_share_is_recovered():
    frequency = np.array([1, 1.25, 1.5])
    seconds = 10 * (0.3 + 0.7 / frequency)
    measured = CompletionTimes(
        "p",
        np.concatenate([np.zeros(3), [0.3, 0.75]]),
        np.concatenate([frequency, [1, 1]]),
        np.concatenate([seconds, [12, 16]]),
    )
    fitted = fit(measured, 2)
    assert fitted.profile.frequency_share == pytest.approx(0.7)
    assert fitted.frequency is not None
    assert fitted.frequency.most < 1e-12


def test_too_few_points_are_rejected():
    with pytest.raises(InputError, match="2 fractions of remote memory for 3 pieces"):
        fit(CompletionTimes("p", np.array([0, 0.75]), np.ones(2), np.array([1.0, 2.0])))
    with pytest.raises(InputError, match="all memory local"):
        fit(CompletionTimes("p", np.array([0.25, 0.5, 0.6, 0.75]), np.ones(4), np.ones(4)))
    with pytest.raises(InputError, match="no fraction of remote memory in"):
        fit(CompletionTimes("p", np.array([0, 0.6, 0.7, 0.75]), np.ones(4), np.ones(4)))


def test_measurements_and_profiles_round_trip_through_files(tmp_path):
    file = tmp_path / "runs.csv"
    file.write_text("workload,remote,seconds\na,0,10\na,0.25,11\na,0.5,13\na,0.75,19\na,0.75,21\n")
    fitted = fit(read_measurements(file)[0])
    (tmp_path / "profiles.csv").write_text(to_csv([fitted.profile]))
    again = read_profiles(tmp_path / "profiles.csv")["a"]
    assert again.at(SHARES) == pytest.approx(fitted.profile.at(SHARES))
    file.write_text("workload,remote,seconds\na,0,10\na,2,11\n")
    with pytest.raises(InputError, match=r"runs.csv, line 3, field 'remote'"):
        read_measurements(file)
    assert fitting.COLUMNS[0] == "workload"
