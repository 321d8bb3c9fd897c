"""Preemption of an imported Slurm cluster, as `preemption` of slurm.toml.

Source: slurm.conf(5), "PreemptMode", "PreemptType" and "PreemptParameters"; observed behavior of Slurm 22.05 (`tests/live`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from poolwise.errors import InputError
from poolwise.files.slurm_import.cluster import SlurmCluster, add, toml
from poolwise.slurm import durations
from poolwise.slurm.conf import ConfSection, SlurmConf
from poolwise.slurm.dumps import QosPreempt, read_qos_preemption

KEYS: Final = ("PreemptType", "PreemptMode", "PreemptExemptTime", "PreemptParameters")
PARAMETERS: Final = ("preempt_youngest_first", "preempt_strict_order", "preempt_reorder_count", "preempt_send_user_signal")
"""Former names of PreemptParameters in SchedulerParameters."""
REQUEUE_DELAY_S: Final = 121
"""Seconds from the end of a preempted job to its next start: two minutes until its credentials expire, and one more."""
_NAMES: Final = {"preempt/partition_prio": "tiers", "preempt/qos": "qos"}
_MODES: Final = {"REQUEUE": "requeue", "CANCEL": "cancel", "OFF": "off"}
_WORDS: Final = {
    "GANG": "jobs do not share resources in time slices",
    "PRIORITY": "a job may preempt jobs of higher priority",
    "WITHIN": "jobs do not preempt others of their own QOS",
}
"""Word of PreemptMode in addition to the mode -> behavior of the simulation instead."""
_HARMLESS: Final = ("send_user_signal", "suspend_grace_time")


def preemption_line(cluster: SlurmCluster) -> str:
    """Return the line `preemption = ...` of slurm.toml, empty without preemption; note the settings that are left out."""
    conf = cluster.conf
    kind = conf.text("PreemptType", "preempt/none").lower()
    place = conf.source("PreemptType")
    mode, problem = _mode(cluster, conf.words("PreemptMode"), conf.source("PreemptMode"))
    settings: dict[str, Any] | None = None
    if kind in ("preempt/none", ""):
        problem = ""
    elif kind not in _NAMES:
        problem = "the type is unknown"
    elif not problem:
        settings, problem = _by_tiers(cluster) if _NAMES[kind] == "tiers" else _by_qos(cluster)
    if problem:
        cluster.leave_out(f"{place}: PreemptType={conf.text('PreemptType')}: jobs are not preempted, because {problem}")
    if settings is None or problem:
        _note_unused(cluster)
        return ""
    exempt = conf.seconds("PreemptExemptTime", 0)
    entries = {"name": _NAMES[kind], "mode": mode, **({"exempt_s": float(exempt)} if exempt > 0 else {})}
    entries |= {**settings, **_parameters(cluster)}
    if "requeue" in (mode, *_values(settings)):
        entries["requeue_delay_s"] = float(REQUEUE_DELAY_S)
    return f"preemption = {_table(entries)}  # {place}"


def _mode(cluster: SlurmCluster, words: tuple[str, ...], place: str) -> tuple[str, str]:
    """Return the mode that a PreemptMode selects, and why it is not applied; note words that are left out."""
    for word in words:
        if word in _WORDS:
            cluster.leave_out(f"{place}: PreemptMode={word}: {_WORDS[word]}")
    modes = [word for word in words if word not in _WORDS]
    if modes == ["SUSPEND"]:
        return "off", f"jobs are not suspended (PreemptMode=SUSPEND, {place})"
    if not modes or modes == ["OFF"]:
        return "off", f"PreemptMode is OFF{f' ({place})' if modes else ', the default of Slurm'}"
    if len(modes) > 1 or modes[0] not in _MODES:
        return "off", f"PreemptMode={','.join(words)} is unknown ({place})"
    return _requeued(cluster.conf, _MODES[modes[0]]), ""


def _requeued(conf: SlurmConf, mode: str) -> str:
    """Return the effective mode: with JobRequeue=0, Slurm cancels the jobs that it cannot requeue."""
    return "cancel" if mode == "requeue" and not conf.yes("JobRequeue", True) else mode


def _by_tiers(cluster: SlurmCluster) -> tuple[dict[str, Any] | None, str]:
    modes = {}
    for name in cluster.members:
        section = cluster.conf.partitions[name]
        place = section.source("PreemptMode")
        if section.words("PreemptMode"):
            modes[name], problem = _mode(cluster, section.words("PreemptMode"), place)
            if problem and "OFF" not in section.words("PreemptMode"):
                cluster.leave_out(f"{place}: jobs of partition {name} are not preempted, because {problem}")
        if section.seconds("GraceTime", 0) > 0:
            cluster.leave_out(f"{section.source('GraceTime')}: GraceTime of partition {name}: preempted jobs end at once")
    return {"partitions": modes} if modes else {}, ""


def _by_qos(cluster: SlurmCluster) -> tuple[dict[str, Any] | None, str]:
    dump = cluster.files.qos
    if dump is None:
        return None, "the dump of QOS is missing (--qos)"
    if "QOS" not in cluster.columns:
        return None, "the log has no column QOS"
    try:
        rows = read_qos_preemption(dump)
    except InputError as error:
        if error.field != "Preempt":
            raise
        return None, f"{dump.name} lacks the column Preempt: {error.remedy}"
    settings: dict[str, Any] = {"preempts": {qos.name: list(qos.preempts) for qos in rows if qos.preempts}}
    if priorities := {qos.name: qos.priority for qos in rows if qos.priority}:
        settings["priorities"] = priorities
    modes = {}
    for qos in rows:
        if qos.mode:
            modes[qos.name] = _qos_mode(cluster, dump, qos)
        if qos.grace:
            cluster.leave_out(f"{dump.name}:{qos.line}: GraceTime of QOS {qos.name}: preempted jobs end at once")
    exempt = {qos.name: float(qos.exempt) for qos in rows if qos.exempt != durations.FOREVER}
    return {**settings, **({"modes": modes} if modes else {}), **({"exempt": exempt} if exempt else {})}, ""


def _qos_mode(cluster: SlurmCluster, dump: Path, qos: QosPreempt) -> str:
    mode, problem = _mode(cluster, tuple(qos.mode.split(",")), f"{dump.name}:{qos.line}")
    if problem and "OFF" not in qos.mode:
        cluster.leave_out(f"{dump.name}:{qos.line}: jobs of QOS {qos.name} are not preempted, because {problem}")
    return mode


def _parameters(cluster: SlurmCluster) -> dict[str, Any]:
    """Return the settings of PreemptParameters; note those that are left out."""
    conf, place = cluster.conf, cluster.conf.source("PreemptParameters")
    old = {
        name.removeprefix("preempt_"): value for name, value in conf.pairs("SchedulerParameters").items() if name in PARAMETERS
    }
    options, settings = {**old, **conf.pairs("PreemptParameters")}, dict[str, Any]()
    for name, value in options.items():
        if name in ("youngest_first", "strict_order"):
            settings[name] = True
        elif name == "reorder_count":
            if not value.isdigit():
                key = "PreemptParameters" if "PreemptParameters" in conf else "SchedulerParameters"
                raise conf.refuse(key, f"reorder_count={value} is not a whole number", "write reorder_count=1")
            settings[name] = int(value)
        elif name not in _HARMLESS:
            cluster.leave_out(f"{place}: PreemptParameters={name} is left out")
    return settings


def _note_unused(cluster: SlurmCluster) -> None:
    """Record keys that have no effect without preemption."""
    sections: list[tuple[str, ConfSection]] = [(key, cluster.conf) for key in (*KEYS[1:], "JobRequeue")]
    sections += [(key, section) for section in cluster.conf.partitions.values() for key in ("PreemptMode", "GraceTime")]
    for key, section in sections:
        if key in section:
            add(cluster.omitted.others.setdefault(key, []), section.source(key))
    if "GANG" in cluster.conf.words("PreemptMode") and cluster.conf.text("PreemptType", "preempt/none") == "preempt/none":
        cluster.leave_out(f"{cluster.conf.source('PreemptMode')}: PreemptMode=GANG: {_WORDS['GANG']}")


def _values(settings: Mapping[str, Any]) -> list[str]:
    """Return the modes of partitions or QOS."""
    return [mode for key in ("partitions", "modes") for mode in settings.get(key, {}).values()]


def _table(value: Mapping[str, Any]) -> str:
    """Return a table on one line; keys are quoted where TOML requires it."""
    entries = [f"{toml_key(key)} = {_table(part) if isinstance(part, Mapping) else toml(part)}" for key, part in value.items()]
    return f"{{ {', '.join(entries)} }}"


def toml_key(name: str) -> str:
    """Return a key of TOML."""
    return name if name.replace("-", "").replace("_", "").isalnum() and name.isascii() else toml(name)
