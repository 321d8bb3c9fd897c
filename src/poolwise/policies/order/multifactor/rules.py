"""Priority settings of `slurm.conf`: weights, limits and flags.

Source: slurm.conf(5) of Slurm 22.05, the keys that begin with "Priority".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from poolwise.errors import InputError
from poolwise.model.licenses import LICENSE
from poolwise.slurm.conf import SlurmConf
from poolwise.slurm.durations import FOREVER

FLAGS = ("NO_FAIR_TREE", "FAIR_TREE", "SMALL_RELATIVE_TO_TIME", "NO_NORMAL_PART", "NO_NORMAL_QOS", "NO_NORMAL_TRES")
"""Supported PriorityFlags that change priorities."""
HARMLESS = ("CALCULATE_RUNNING", "ACCRUE_ALWAYS", "NO_NORMAL_ASSOC")
"""Accepted PriorityFlags without effect in a simulation: no job is held, and running jobs do not need a priority."""
KEYS = (
    "PriorityType", "PriorityFlags", "PriorityUsageResetPeriod", "PriorityWeightAge", "PriorityWeightFairshare",
    "PriorityWeightJobSize", "PriorityWeightPartition", "PriorityWeightQOS", "PriorityWeightTRES", "PriorityMaxAge",
    "PriorityCalcPeriod", "PriorityDecayHalfLife", "FairShareDampeningFactor", "PriorityFavorSmall", "TRESBillingWeights",
)  # fmt: skip
"""Keys of slurm.conf that the order reads, and that `settings` may override."""
TRES = ("cpu", "mem", "node", "gres/gpu")
"""Resources that PriorityWeightTRES may weight besides licenses, in Slurm's order of addition."""


def is_weighted(resource: str) -> bool:
    """Return whether the order supports a resource in PriorityWeightTRES, given in lower case."""
    return resource in TRES or resource.startswith(LICENSE)


@dataclass(frozen=True)
class PriorityRules:
    """Weights, limits and flags of the multifactor priority.

    Attributes
    ----------
    age, fair_share, job_size, partition, qos : weights
    tres : resource of `TRES`, or license/NAME in lower case -> weight
    max_age, period, half_life : s; a half-life of 0 lets usage count forever
    damping : FairShareDampeningFactor
    favor_small : PriorityFavorSmall: smaller jobs get the larger job-size factor
    flags : the PriorityFlags that are set
    """

    age: int = 0
    fair_share: int = 0
    job_size: int = 0
    partition: int = 0
    qos: int = 0
    tres: Mapping[str, float] = field(default_factory=dict)
    max_age: int = 7 * 86400
    period: int = 300
    half_life: int = 7 * 86400
    damping: int = 1
    favor_small: bool = False
    flags: frozenset[str] = frozenset()

    @classmethod
    def of(cls, conf: SlurmConf) -> PriorityRules:
        """Read the settings. Raises InputError with file and line for settings that are not supported."""
        kind = conf.text("PriorityType", "priority/multifactor" if str(conf.file) == "settings" else "priority/basic")
        if kind != "priority/multifactor":
            problem = f"'{kind}' has no priority factors"
            raise InputError(problem, file=conf.file, field="PriorityType", remedy='use order = "fcfs" instead')
        flags = frozenset(conf.words("PriorityFlags"))
        if unknown := sorted(flags - {*FLAGS, *HARMLESS}):
            raise conf.refuse("PriorityFlags", f"{unknown[0]} is not supported", f"supported: {', '.join((*FLAGS, *HARMLESS))}")
        if conf.text("PriorityUsageResetPeriod", "NONE").upper() not in ("NONE", ""):
            raise conf.refuse("PriorityUsageResetPeriod", "usage resets are not supported", "remove the key")
        for section in (conf, *conf.partitions.values()):
            if section.text("TRESBillingWeights", ""):
                remedy = "remove the key; usage and job size then count cores"
                raise section.refuse("TRESBillingWeights", "billing weights are not supported", remedy)
        rules = cls(
            conf.whole("PriorityWeightAge", 0),
            conf.whole("PriorityWeightFairshare", 0),
            conf.whole("PriorityWeightJobSize", 0),
            conf.whole("PriorityWeightPartition", 0),
            conf.whole("PriorityWeightQOS", 0),
            conf.numbers("PriorityWeightTRES"),
            conf.seconds("PriorityMaxAge", cls.max_age),
            conf.seconds("PriorityCalcPeriod", cls.period),
            conf.seconds("PriorityDecayHalfLife", cls.half_life),
            conf.whole("FairShareDampeningFactor", 1, 1),
            conf.yes("PriorityFavorSmall"),
            flags,
        )
        if unknown := sorted(name for name in rules.tres if not is_weighted(name)):
            remedy = f"supported: {', '.join(TRES)}, {LICENSE}NAME"
            raise conf.refuse("PriorityWeightTRES", f"'{unknown[0]}' is not supported", remedy)
        for key, value in (("PriorityMaxAge", rules.max_age), ("PriorityCalcPeriod", rules.period)):
            if value in (0, FOREVER):
                raise conf.refuse(key, "must be a time above 0", "write, for example, 7-0 or 5")
        return rules

    @property
    def decay(self) -> float:
        """Fraction of the usage that remains after one second, with Slurm's arithmetic: 1 - 0.693 / half-life."""
        return 1.0 - 0.693 / self.half_life if self.half_life > 0 else 1.0
