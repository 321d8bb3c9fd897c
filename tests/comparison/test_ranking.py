"""The candidates that decide a plan, compared with a search through all of them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.comparison.ranking import CandidateRanking

STATES = st.sampled_from(["keeps", "breaks", "undecided"])


@settings(max_examples=200)
@given(st.lists(st.tuples(STATES, st.integers(0, 4)), max_size=8))
def test_ranking_matches_a_search_through_all_candidates(candidates):
    ranked = sorted(range(len(candidates)), key=lambda k: (candidates[k][1], k))
    ranking = CandidateRanking.of(ranked, lambda k: candidates[k][0], lambda k: float(candidates[k][1]))
    keeping = [k for k, (state, _) in enumerate(candidates) if state == "keeps"]
    least = min((candidates[k][1] for k in keeping), default=10)
    assert ranking.best == min((k for k in keeping if candidates[k][1] == least), default=None)
    rest = [k for k in keeping if k != ranking.best]
    assert ranking.runner_up == min(rest, key=lambda k: (candidates[k][1], k), default=None)
    better = [k for k, (state, value) in enumerate(candidates) if state == "undecided" and value < least]
    assert ranking.undecided == min(better, key=lambda k: (candidates[k][1], k), default=None)
    assert ranking.status == ("undecided" if better else "decided" if keeping else "infeasible")
