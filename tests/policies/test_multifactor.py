"""Slurm's multifactor priority: against the output of a real Slurm 22.05, by hand, and in both engines."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.model import Kind, Machine, Workload
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.backfill.slurm import SlurmBackfill
from poolwise.policies.order.multifactor import Multifactor
from poolwise.policies.order.multifactor.factors import FixedFactors
from poolwise.policies.order.multifactor.order import Recalculated
from poolwise.policies.order.multifactor.rules import PriorityRules
from poolwise.policies.order.multifactor.shares import ShareTree
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler
from poolwise.slurm.conf import SlurmConf
from poolwise.slurm.dumps import Association
from poolwise.traces.generators import generate
from tests.helpers.fair_tree import fair_tree
from tests.helpers.random_studies import difference
from tests.helpers.slurm_priorities import RecordedPriorities

DATA = Path(__file__).parents[1] / "data" / "slurm-22.05"
FILES = tuple(str(DATA / "priorities" / "fair-tree" / name) for name in ("slurm.conf", "sshare.txt", "qos.txt"))


@pytest.mark.parametrize("case", ["fair-tree", "size-over-time", "weights-of-gpus"])
def test_every_number_of_sprio_is_reproduced(case: str) -> None:
    recording = RecordedPriorities.read(DATA / "priorities" / case)
    assert len(recording.printed) == (6 if case == "weights-of-gpus" else 9)
    assert recording.differences() == []


def test_every_number_of_sprio_with_classic_fair_share_is_reproduced() -> None:
    """The dump has six digits of the effective usage, so the truncated sum may be one lower."""
    recording = RecordedPriorities.read(DATA / "priorities" / "classic-small-first")
    assert len(recording.printed) == 9
    assert [text for text in recording.differences() if ", priority:" not in text] == []
    assert all(abs(int(row["priority"]) - int(recording.ours[job]["priority"])) <= 1 for job, row in recording.printed.items())


def weighted(settings: dict[str, str | int | float], conf: Path | None = None, *, devices: bool = False) -> list[float]:
    """Return the TRES terms of four jobs with 1, 4, 0 and 2 GPUs in all, and 0, 0, 2 and 1 of four licenses.

    The machine has two nodes with 4 GPUs and one without; with `devices`, two GPUs that are devices of the last node.
    """
    n, d = 3, 2 * devices
    machine = Machine(
        name="GPUs",
        owners=tuple(f"n{k}" for k in range(n + d)),
        kind=np.repeat([Kind.NODE, Kind.DEVICE], [n, d]).astype(np.int64),
        type=("node",) * n + ("gpu",) * d,
        rack=np.zeros(n + d, dtype=np.int64),
        position=np.zeros((n + d, 2), dtype=np.int64),
        home=np.repeat([-1, 2], [n, d]),
        resources=("cores", "gpu", "devices"),
        capacity=np.array([[8, 4, 0], [8, 4, 0], [8, 0, 0], *[[0, 0, 1]] * d], dtype=np.int64),
        licenses={"Matlab": 4},
    )
    load = Workload.of(
        np.zeros(4, dtype=np.int64),
        np.ones(4, dtype=np.int64),
        tasks=np.array([1, 2, 1, 1]),
        requests={"cores": np.ones(4, dtype=np.int64), "gpu": np.array([1, 2, 0, 2])},
        attributes={"partition": np.array(["gpu", "", "gpu", ""]), "license/Matlab": np.array([0, 0, 2, np.nan])},
    )
    keys = SlurmConf.of(settings) if conf is None else SlurmConf.read_file(conf).with_values(settings)
    return FixedFactors(PriorityRules.of(keys), keys, machine, {}).resources(load.table, slice(None)).tolist()


def test_weights_of_gpus_and_licenses_are_relative_to_the_amounts_of_the_partition(tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text(
        "PriorityType=priority/multifactor\nNodeName=n[0-1] Gres=gpu:a100:4(S:0-1),shard:8\nNodeName=n2\n"
        "PartitionName=all Nodes=ALL Default=YES\nPartitionName=gpu Nodes=n[1-2]\n"
    )
    weights = {"PriorityWeightTRES": "GRES/gpu=1000,License/matlab=200"}
    assert weighted(weights, conf) == [250.0, 500.0, 100.0, 250.0]
    assert weighted(weights) == [125.0, 500.0, 100.0, 250.0]  # without slurm.conf, all nodes count
    assert weighted(weights, devices=True) == [100.0, 400.0, 100.0, 200.0]
    assert weighted({**weights, "PriorityFlags": "NO_NORMAL_TRES"}, conf) == [1000.0, 4000.0, 400.0, 2000.0]
    assert weighted({"PriorityWeightTRES": "cpu=24,license/other=5"}) == [1.0, 2.0, 1.0, 1.0]


def test_fair_tree_and_classic_factors_by_hand() -> None:
    """Slurm's page on fair tree: rank accounts among siblings first, then users within them; ties share a rank.

    The usage is 100. One account has half the shares and a tenth of the usage: its users come first, whatever they used.
    """
    tree = ShareTree(
        [
            Association("root", "", -1, 1, 100),
            Association("lean", "", 0, 1, 10),
            Association("lean", "ann", 1, 1, 9),
            Association("lean", "bob", 1, 1, 1),
            Association("greedy", "", 0, 1, 90),
            Association("greedy", "cy", 4, 1, 0),
            Association("greedy", "dee", 4, 2, 60),
            Association("greedy", "eve", 4, 1, 30),
        ]
    )
    factor = tree.fair_tree(tree.usage)
    assert {each.user: f for each, f in zip(tree.associations, factor.tolist(), strict=True) if each.user} == {
        "bob": 1.0, "ann": 4 / 5, "cy": 3 / 5, "dee": 2 / 5, "eve": 2 / 5,
    }  # fmt: skip
    classic = tree.classic(tree.effective(tree.usage), 1)
    # ann: her own 0.09 and half of the rest of the account's 0.1, over a quarter of all shares
    assert classic[2] == pytest.approx(2 ** -((0.09 + 0.01 / 2) / 0.25))


@st.composite
def trees(draw: st.DrawFn) -> ShareTree:
    """Return a tree of up to 20 associations at any depth, with many ties: few shares and usages, some of them 0."""
    associations, accounts = [Association("root", "", -1, 1, 0)], [0]
    for k in range(draw(st.integers(1, 20))):
        parent, is_user = draw(st.sampled_from(accounts)), draw(st.booleans())
        account = associations[parent].account if is_user else f"a{k}"
        associations.append(Association(account, f"u{k}" if is_user else "", parent, draw(st.integers(0, 2)), 0))
        if not is_user:
            accounts.append(k + 1)
    return ShareTree(associations)


@given(trees(), st.data())
def test_fair_tree_ranks_accounts_and_users_one_after_the_other(tree: ShareTree, data: st.DataObject) -> None:
    """Usages follow one another and differ in few users, so that a tree keeps some of its rankings."""
    users = [k for k, association in enumerate(tree.associations) if association.user]
    own = np.zeros(len(tree))
    for changed in [users, *(data.draw(st.sets(st.sampled_from(users), max_size=2)) for _ in range(5 if users else 0))]:
        for k in changed:
            own[k] = data.draw(st.integers(0, 3))
        usage = own.copy()
        for k in range(len(own) - 1, 0, -1):
            usage[tree.parent[k]] += usage[k]
        assert tree.total(own).tolist() == usage.tolist()
        assert tree.fair_tree(usage).tolist() == fair_tree(tree, usage).tolist()


def test_tied_accounts_are_ranked_as_one() -> None:
    tree = ShareTree(
        [
            Association("root", "", -1, 1, 20),
            Association("a", "", 0, 1, 10),
            Association("a", "ann", 1, 1, 10),
            Association("a", "abe", 1, 1, 0),
            Association("b", "", 0, 1, 10),
            Association("b", "bob", 4, 1, 4),
            Association("b", "bea", 4, 1, 6),
        ]
    )
    factor = tree.fair_tree(tree.usage)
    assert [factor[k] for k in (3, 5, 6, 2)] == [1.0, 3 / 4, 2 / 4, 1 / 4]  # abe, bob, bea, ann across both accounts


def study(seed: int, jobs: int = 60) -> tuple[Machine, Workload]:
    g = np.random.default_rng(seed)
    users = np.array(["root/alpha", "daemon/alpha", "bin/alpha", "daemon/beta", "bin/gamma", "guest/none"])[
        g.integers(0, 6, jobs)
    ]
    user, account = (np.array([text.split("/")[k] for text in users]) for k in (0, 1))
    return Machine.of_racks(4, 4, cores=16, local=65536), Workload.of(
        np.sort(g.integers(0, 900, jobs)) * SECOND,
        g.integers(3, 200, jobs) * SECOND,
        requested=g.integers(1, 6, jobs) * 60 * SECOND,
        requests={"nodes": g.choice([1, 1, 2, 4, 8], jobs)},
        attributes={
            "user": user,
            "account": account,
            "qos": g.choice(["normal", "high"], jobs),
            "partition": g.choice(["main", "short"], jobs),
            "nice": g.integers(-50, 2000, jobs),
        },
    )


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*without a share")
@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(("FAIR_TREE", "NO_FAIR_TREE")), st.sampled_from(("0:00:30", "1", "5")))
def test_engines_agree_with_the_stateless_order(seed: int, flags: str, period: str) -> None:
    """The order that recomputes everything at each pass is the slow reference."""
    machine, workload = study(seed)
    order = Multifactor(*FILES, settings={"PriorityFlags": flags, "PriorityCalcPeriod": period}, recalculated=7.5)

    class Stateless(Multifactor):
        def open(self) -> Multifactor:
            return self

        def priority(self, queue, snapshot):  # type: ignore[no-untyped-def]
            return Recalculated(self).priority(queue, snapshot)

    stateless = Stateless(order.conf, order.shares, order.qos, order.settings, order.recalculated)
    plain = simulate(workload, machine, ListScheduler(order, Easy()), engine="reference")
    fast = simulate(workload, machine, ListScheduler(order, Easy()), engine="compiled")
    slow = simulate(workload, machine, ListScheduler(stateless, Easy()), engine="reference")
    assert difference(plain.schedule, fast.schedule) == ""
    assert difference(plain.schedule, slow.schedule) == ""


@pytest.mark.long
@pytest.mark.parametrize(
    ("jobs", "load", "interval"), [(2000, 0.95, 600), (300, 1.56, 60), pytest.param(600, 1.56, 60, marks=pytest.mark.further)]
)
def test_engines_agree_on_a_log_under_slurm_with_multifactor(jobs: int, load: float, interval: int) -> None:
    """Days of jobs of five users on 88 nodes: a moderate and an increasing backlog; limits up to ten times the runtimes."""
    base, g = generate("lublin", jobs=jobs, nodes=88, load=load), np.random.default_rng(jobs)
    users = g.choice(["root/alpha", "daemon/alpha", "bin/alpha", "daemon/beta", "bin/gamma"], jobs)
    workload = Workload.of(
        base.submit,
        base.duration,
        requested=-(-base.duration * g.choice([1, 2, 5, 10], jobs) // (300 * SECOND)) * 300 * SECOND,
        requests={"nodes": base.nodes},
        attributes={
            "user": np.array([text.split("/")[0] for text in users]),
            "account": np.array([text.split("/")[1] for text in users]),
            "qos": g.choice(["normal", "high"], jobs),
            "partition": g.choice(["main", "short"], jobs),
            "nice": g.integers(-50, 2000, jobs),
        },
    )
    periods = {"PriorityCalcPeriod": "5", "PriorityMaxAge": "7-0", "PriorityDecayHalfLife": "7-0"}
    how = ListScheduler(Multifactor(*FILES, settings=periods), SlurmBackfill(None, {"bf_interval": interval}))
    machine = Machine.of_racks(1, 88, cores=16, local=65536)
    plain, fast = (simulate(workload, machine, how, engine=engine) for engine in ("reference", "compiled"))
    assert fast.engine == "compiled" and len(plain.schedule.job) == jobs
    assert difference(plain.schedule, fast.schedule) == ""
    head = simulate(workload, machine, ListScheduler(how.order), engine="compiled").schedule
    assert (head.start[np.argsort(head.job)] != fast.schedule.start[np.argsort(fast.schedule.job)]).mean() > 0.5


def test_new_job_has_no_age_until_the_next_recalculation() -> None:
    machine = Machine.flat(1)
    workload = Workload.of(
        np.array([0, 1, 30]) * SECOND, np.array([80, 10, 10]) * SECOND, attributes={"nice": np.array([0, 0, -5])}
    )
    late = {"PriorityWeightAge": 600, "PriorityMaxAge": "0:10:00", "PriorityCalcPeriod": "1"}
    for period, first in (("1", 1), ("2", 2)):  # at 80 s: with a recalculation at 60 s the older job leads by 29
        order = Multifactor(settings={**late, "PriorityCalcPeriod": period})
        starts = simulate(workload, machine, ListScheduler(order)).schedule.job.tolist()
        assert starts[1] == first


def test_keys_of_settings_are_case_insensitive() -> None:
    rules = [Recalculated(Multifactor(settings={key: 5})).rules for key in ("PriorityWeightJobSize", "priorityweightjobsize")]
    assert rules[0] == rules[1] and rules[0].job_size == 5


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (Multifactor(settings={"PriorityWeightFairshare": 1}), "no shares are given"),
        (Multifactor(settings={"PriorityWeightQOS": 1}), "no QOS priorities are given"),
        (Multifactor(settings={"PriorityWeightPartition": 1}), "'main', which is not defined"),
        (Multifactor(settings={"PriorityFlags": "DEPTH_OBLIVIOUS"}), "DEPTH_OBLIVIOUS is not supported"),
        (Multifactor(settings={"PriorityWeightTRES": "gres/shard=5"}), "'gres/shard' is not supported"),
        (Multifactor(settings={"PriorityWeightTRES": "gres/gpu:a100=5"}), "'gres/gpu:a100' is not supported"),
        (Multifactor(settings={"PriorityType": "priority/basic"}), "has no priority factors"),
        (Multifactor(settings={"PriorityMaxAge": "UNLIMITED"}), "must be a time above 0"),
        (
            Multifactor(settings={"PriorityWeightJobSize": 1, "PriorityWeightJobsize": 2}),
            "'PriorityWeightJobSize' and 'PriorityWeightJobsize' are the same key",
        ),
        (Multifactor(settings={"TRESBillingWeights": "CPU=1"}), "billing weights are not supported"),
        (Multifactor(FILES[0], FILES[1], FILES[2]), ""),
    ],
)
def test_missing_files_and_unsupported_settings_are_reported_before_the_run(order: Multifactor, words: str) -> None:
    machine, workload = study(1)
    if not words:
        with pytest.warns(UserWarning, match="users without a share"):
            ListScheduler(order).check(machine, workload.table)
        return
    with pytest.raises(InputError, match=words) as raised:
        ListScheduler(order).check(machine, workload.table)
    assert raised.value.remedy
