"""Options of sbatch in job streams of the Slurm simulator.

Source: sbatch(1) of Slurm 23.02; `contribs/sim/sim_events.c` of the Slurm simulator of UB CCR (N. Simakov et al., "Slurm
Simulator: Improving Slurm Scheduler Performance on Large HPC Systems by Utilization of Multiple Controllers and Node Sharing",
PEARC 2018) for its own options.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

READ: Final = {
    "job-name": "J", "uid": "", "time": "t", "ntasks": "n", "ntasks-per-node": "", "nodes": "N", "cpus-per-task": "c",
    "account": "A", "partition": "p", "qos": "q", "gres": "", "gpus": "G", "gpus-per-node": "", "gpus-per-task": "", "mem": "",
    "mem-per-cpu": "", "constraint": "C", "licenses": "L",
    "sim-walltime": "", "sleep": "", "cancel-in": "", "jid": "", "job-id": "j",
}  # fmt: skip
"""Long names of the options that a trace reads -> their short names. The last five are options of the simulator."""
VALUED: Final = {
    "begin": "b", "bb": "", "bbf": "", "batch": "", "chdir": "D", "clusters": "M", "comment": "", "container": "",
    "core-spec": "S", "cores-per-socket": "", "cpu-freq": "", "cpus-per-gpu": "", "deadline": "", "delay-boot": "",
    "dependency": "d", "distribution": "m", "error": "e", "exclude": "x", "export": "", "export-file": "",
    "extra-node-info": "B",
    "gid": "", "gpu-bind": "", "gpu-freq": "", "gpus-per-socket": "", "gres-flags": "", "hint": "", "input": "i",
    "mail-type": "", "mail-user": "", "mcs-label": "", "mem-bind": "", "mem-per-gpu": "", "mincpus": "", "network": "",
    "nodefile": "F", "nodelist": "w", "ntasks-per-core": "", "ntasks-per-gpu": "", "ntasks-per-socket": "", "open-mode": "",
    "output": "o", "power": "", "prefer": "", "priority": "", "profile": "", "reservation": "", "signal": "",
    "sockets-per-node": "", "switches": "", "thread-spec": "", "threads-per-core": "", "time-min": "", "tmp": "",
    "wait-all-nodes": "", "wckey": "", "wrap": "", "acctg-freq": "",
}  # fmt: skip
"""Other options with a value -> their short names."""
FLAGS: Final = {
    "contiguous": "", "exclusive": "", "get-user-env": "", "hold": "H", "ignore-pbs": "", "kill-on-invalid-dep": "", "nice": "",
    "no-kill": "k", "no-requeue": "", "overcommit": "O", "oversubscribe": "s", "parsable": "", "propagate": "", "quiet": "Q",
    "reboot": "", "requeue": "", "spread-job": "", "test-only": "", "use-min-nodes": "", "verbose": "v", "wait": "W",
}  # fmt: skip
"""Options without a value, or with a value only after "=" -> their short names."""
REFUSED: Final = {"array": "a", "array-inx": "", "hetjob": ""}
"""Options with a value that submit several jobs -> their short names."""
_SIMULATED: Final = ("sim-walltime", "cancel-in", "jid", "sleep", "uid")
"""Options that the simulator writes with one "-"."""

_VALUED: Final = {**READ, **VALUED, **REFUSED}
_SHORT: Final = {short: name for name, short in {**_VALUED, **FLAGS}.items() if short}


class InvalidOption(ValueError):
    """An option that sbatch does not have, that lacks its value, or that a trace cannot represent."""

    def __init__(self, problem: str, option: str, remedy: str) -> None:
        self.option, self.remedy = option, remedy
        super().__init__(problem)


def parse_options(text: str) -> dict[str, str]:
    """Return the options of a command line by long name, "" for flags; if an option is repeated, the last value counts.

    The name of the script and its arguments are ignored, except for "-sleep". Raises InvalidOption.
    """
    try:
        words = iter(text.split() if not set(text) & set("'\"\\") else shlex.split(text))
    except ValueError as error:
        raise InvalidOption(f"invalid quoting: {str(error).lower()}", "", "close the quotation") from None
    options: dict[str, str] = {}
    for word in words:
        if word == ":":
            problem = "heterogeneous jobs are not supported"
            raise InvalidOption(problem, "hetjob", "write a line for each component")
        if not word.startswith("-"):
            options |= _after_script(words)
            break
        name, value = _option(word, words)
        if name in REFUSED:
            raise InvalidOption("job arrays are not supported", "array", "write a line for each task")
        options[name] = value
    return options


def _option(word: str, words: Iterator[str]) -> tuple[str, str]:
    """Return the long name and the value of an option."""
    name, equals, value = word.lstrip("-").partition("=")
    if word.startswith("--") or name in _SIMULATED:
        if name not in _VALUED and name not in FLAGS:
            raise InvalidOption(f"unknown option '{word[:40]}'", name[:40], "correct the option, or remove it")
        if name in FLAGS or equals:
            return name, value
    else:
        short, value = word[1:2], word[2:]
        name = _SHORT.get(short, "")
        if not name:
            raise InvalidOption(f"unknown option '{word[:40]}'", word[1:41], "correct the option, or remove it")
        if name in FLAGS:
            return name, ""
        if value:
            return name, value
    value = next(words, "")
    if not value:
        raise InvalidOption(f"option '{word[:40]}' has no value", name, "give its value")
    return name, value


def _after_script(words: Iterator[str]) -> dict[str, str]:
    """Return the run time that the simulator reads from the arguments of the script: -sleep SECONDS."""
    rest = list(words)
    if "-sleep" not in rest[:-1]:
        return {}
    return {"sleep": rest[rest.index("-sleep") + 1]}
