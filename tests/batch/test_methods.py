"""Published methods: their guarantees on random problems."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings

from poolwise import registry
from poolwise.batch.methods.cfm import Cfm, shrink
from poolwise.batch.methods.irop import Irop, Rounding
from poolwise.batch.methods.method import Limit, find_method
from poolwise.batch.problem.check import check_assignment
from poolwise.batch.problem.definition import Groups
from poolwise.batch.search.relaxation import Relaxation
from poolwise.errors import InputError, UnknownNameError
from poolwise.optimize.linear import LinearProgram, LinearSolution
from poolwise.performance.profiles import Profile
from tests.helpers.batch_problems import CONCAVE, brute_force, linear_bound, problems


@settings(max_examples=40, deadline=None)
@given(problems(most=5, modules=4, concave=True))
def test_every_solution_is_valid_except_for_slowdowns_that_a_method_ignores(problem):
    for name in ("irop", "heep", "cfm", "first-fit"):
        solution = find_method(name).solve(problem, Limit.by_work(5))
        verdict = check_assignment(problem, solution.assignment, partial=bool(solution.dropped))
        ignored = {"4j"} if name in ("cfm", "first-fit") else set()
        assert set(verdict.count()) <= ignored, (name, verdict.violations)
        assert verdict.objective == pytest.approx(solution.objective, abs=1e-9)
        assert bool(solution.unmet) == bool(solution.dropped)


@pytest.mark.long
@settings(max_examples=30, deadline=None)
@given(problems(most=4, modules=4))
def test_rounding_is_never_better_than_its_bound_or_the_optimum(problem):
    solution, best = Irop().solve(problem, Limit.by_work(5)), brute_force(problem)
    assume(not solution.dropped)
    assert solution.bound_of == "F-DWLP (linear program)"
    assert solution.objective >= solution.bound - 1e-6
    assert best is not None
    assert solution.objective >= best.objective - 1e-6


def one_by_one(problem):
    """Return the literal relaxation: the same problem with each module in its own group, even if modules are identical."""
    literal, m = replace(problem), problem.modules
    alone = Groups(
        np.arange(len(m)), np.ones(len(m), dtype=np.int64), m.cores, m.frequency, m.memory,
        np.where(m.on, 0.0, m.static), m.dynamic, m.free_cores, m.on,
    )  # fmt: skip
    object.__setattr__(literal, "groups", alone)
    return literal


@settings(max_examples=30, deadline=None)
@given(problems(most=4, modules=4))
def test_aggregating_identical_modules_keeps_the_bound(problem):
    literal = one_by_one(problem)
    for fixed in (True, False):
        whole, other = linear_bound(problem, fixed=fixed), linear_bound(literal, fixed=fixed)
        assert whole == pytest.approx(other, abs=1e-6)


@settings(max_examples=20, deadline=None)
@given(problems(most=4, modules=4))
def test_program_grown_by_rounding_matches_a_fresh_one(problem):
    """After each fix the incremental program has the value of a fresh one with the same choices."""
    assume(problem.allowed.any(axis=1).all())
    grown = Rounding.of(problem)
    assume(grown.y is not None)
    assume(all(grown.fix(w) for w in range(len(problem.batch))))
    fresh = Rounding.of(problem)
    for w in range(len(problem.batch)):
        module = grown.module_of[w]
        if module not in fresh.columns:
            fresh._open(module)
        fresh.relaxation.program.set_bounds(int(fresh.columns[module][w]), 1, 1)
    assert fresh._solve()
    assert fresh.value == pytest.approx(grown.value, abs=1e-6)


def test_methods_are_found_by_name_or_file(tmp_path):
    methods = {"place", "irop", "opt", "heep", "cfm", "first-fit"}
    assert set(registry.names("methods")) == methods
    for name in methods:  # each in the file of its name
        assert type(find_method(name)).__module__ == f"poolwise.batch.methods.{name.replace('-', '_')}"
    with pytest.raises(InputError, match=r"known: .*seed"):
        find_method("place", sed=1)
    with pytest.raises(UnknownNameError, match="did you mean 'place'"):
        find_method("plase")
    (tmp_path / "mine.py").write_text(
        "from poolwise.batch.methods.first_fit import FirstFit\n\nclass Mine(FirstFit):\n    pass\n"
    )
    assert type(find_method(f"{tmp_path / 'mine.py'}:Mine")).__name__ == "Mine"


def profile(name="p", top=1.0) -> Profile:
    return Profile(name, (0, 0.75), (0, top))


@pytest.mark.parametrize("rule", ["uniform", "proportional", "optimal"])
def test_cfm_shares_fill_the_server_and_respect_the_minimum(rule):
    size, least = np.array([40.0, 60.0, 100.0]), np.array([0.25, 0.5, 0.25])
    share = shrink(rule, size, least, 120.0, [profile(), profile(top=3.0), CONCAVE])
    assert float((share * size).sum()) == pytest.approx(120.0)
    assert (share >= least - 1e-9).all()
    assert (share <= 1 + 1e-9).all()


def test_cfm_shares_by_hand():
    size, least = np.array([40.0, 60.0]), np.array([0.25, 0.5])
    uniform = shrink("uniform", size, least, 80.0, [profile()] * 2)
    assert uniform.tolist() == pytest.approx([0.8, 0.8])
    proportional = shrink("proportional", size, least, 80.0, [profile()] * 2)  # excess 20; both can give up 30
    assert proportional.tolist() == pytest.approx([1 - 10 / 40, 1 - 10 / 60])


def test_cfm_optimal_is_at_least_as_good_as_any_split():
    size, least, profiles = np.array([50.0, 80.0]), np.array([0.25, 0.25]), [profile(top=3.0), profile(top=0.3)]

    def ratio(x):
        time = np.array([1 + float(p.at(1 - v)) for p, v in zip(profiles, x, strict=True)])
        return (size * (x * time - 1)).sum() / (size * (1 - x) * time).sum()

    best = ratio(shrink("optimal", size, least, 90.0, profiles))
    for first in np.linspace(0.25, 1, 61):
        second = (90 - first * 50) / 80
        if 0.25 <= second <= 1:
            assert best <= ratio(np.array([first, second])) + 1e-4


def test_cfm_server_order_depends_on_the_seed():
    from poolwise.batch.methods.place import example

    problem = example()
    homes = {tuple(Cfm(seed=s).solve(problem, Limit.by_work(1)).assignment.module.tolist()) for s in range(20)}
    assert len(homes) > 1


def test_shortages_of_an_infeasible_batch_are_named():
    from poolwise.batch.methods.place import example
    from poolwise.batch.search.relaxation import shortages

    problem = example()
    tight = replace(problem, modules=replace(problem.modules, memory=np.full(2, 70.0)), remote=40.0)
    (short,) = shortages(tight)  # 60 MiB fit neither local nor remote memory; more of either would fix some of it
    assert short.constraint in ("4d, 4f", "4g")
    assert short.short == pytest.approx(20)
    assert shortages(problem) == []
    assert Relaxation.of(problem, fixed=True).program.solve().status == "optimal"


@settings(max_examples=20, deadline=None)
@given(problems(most=5, modules=5))
def test_rounding_on_shared_columns_matches_rounding_on_columns_per_module(problem):
    """After each choice the literal relaxation, with a column per workload and module, has the same value."""
    assume(problem.allowed.any(axis=1).all())
    shared = Rounding.of(problem)
    assume(shared.y is not None)
    literal = Relaxation.of(one_by_one(problem), fixed=True)
    for w in range(len(problem.batch)):
        if not shared.fix(w, solve_again=w % 2 == 0):
            break
        home = shared.module_of[w]
        literal.program.set_bounds(int(literal.assign[w, home]), 1, 1)
        literal.program.set_bounds(literal.active[home], 1, 1)  # z = 1 is fixed together with y = 1
        of = problem.groups.of_module
        opened = sum(float(problem.groups.static[of[c]]) for c in set(shared.module_of.values()))  # no column there
        value = shared.value + problem.weights[1] * opened
        assert literal.program.solve().objective == pytest.approx(value, abs=1e-6)


def test_shortages_are_unknown_if_the_solver_fails(monkeypatch):
    from poolwise.batch.methods.place import example
    from poolwise.batch.methods.shrink import why

    problem = example()
    assert "suffice in total" in why(problem)
    failed = LinearSolution("failed", float("nan"), float("-inf"), np.zeros(0), np.zeros(0))
    monkeypatch.setattr(LinearProgram, "solve", lambda self: failed)
    assert "unknown, because the solver failed" in why(problem)
