"""A real Slurm with 16 small nodes for tests, started and stopped by `slurm-up.sh` in this folder."""

from __future__ import annotations

import getpass
import os
import pwd
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

UP = Path(__file__).with_name("slurm-up.sh")
SUBMIT = Path(__file__).parents[3] / "deploy" / "slurm" / "job_submit.lua"
ACCOUNTS = {"alpha": ("root", 10), "beta": ("root", 30), "gamma": ("beta", 2)}
"""Account -> parent, shares."""
USERS = {
    ("alpha", "root"): 5, ("alpha", "daemon"): 3, ("alpha", "bin"): 3, ("beta", "daemon"): 7, ("gamma", "bin"): 1,
    ("gamma", "games"): 1, ("gamma", "root"): 1,
}  # fmt: skip
"""(account, user) -> shares."""
QUALITIES = {"normal": 20, "high": 100}
"""QOS -> priority."""
PUBLIC_KEYS = (
    "ClusterName",
    "Scheduler",
    "SelectType",
    "Priority",
    "FairShare",
    "AccountingStorageEnforce",
    "DefMem",
    "Licenses",
    "GresTypes",
    "Preempt",
    "TopologyPlugin",
    "NodeName",
    "PartitionName",
)
"""Prefixes of the lines of slurm.conf that affect scheduling; other lines contain paths of this machine."""


def missing_programs(accounting: bool = True) -> str:
    """Return a message that names the missing programs of Slurm; "" if all are installed."""
    needed = ("slurmctld", "slurmd", "sbatch", "munged", *(("slurmdbd", "mariadbd") if accounting else ()))
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    missing = [name for name in needed if shutil.which(name, path=path) is None]
    if not missing:
        return ""
    return f"{', '.join(missing)} not found; run `tests/live/slurm/packages.sh` as root to install the packages"


class Cluster:
    """A running Slurm, with accounts, users and two qualities of service if accounting is on.

    Parameters
    ----------
    lines
        Additional lines of slurm.conf.
    parameters
        SchedulerParameters; "" for the defaults of `slurm-up.sh`.
    port
        First port of the daemons.
    accounting
        Whether slurmdbd runs, which takes half a minute to start.
    licenses
        Licenses in addition to the pools of the racks, in the syntax of slurm.conf.
    nodes
        Number of nodes.
    racks
        Number of racks, which are the leaf switches of topology.conf.
    topology
        Contents of topology.conf; "" for the racks below one switch.
    weights, cpus, memory, gpus
        Weight, CPUs, MiB and GPUs of a node of each rack, separated by commas; "" for the defaults: 1, 16, 65536 and none.
    """

    def __init__(
        self,
        lines: str,
        parameters: str = "",
        port: int = int(os.environ.get("SLURM_UP_PORT", "18000")),
        *,
        accounting: bool = True,
        licenses: str = "",
        nodes: int = 16,
        racks: int = 4,
        topology: str = "",
        weights: str = "",
        cpus: str = "",
        memory: str = "",
        gpus: str = "",
    ) -> None:
        self.accounting = accounting
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-up-"))
        self.folder.chmod(0o755)  # jobs of other users read their scripts there
        extra = self.folder / "more.conf"
        extra.write_text(lines)
        if "JobSubmitPlugins=lua" in lines:
            (self.folder / "etc").mkdir(mode=0o755)
            shutil.copy(SUBMIT, self.folder / "etc" / SUBMIT.name)
        self.env = {
            **os.environ,
            "SLURM_UP_DIR": str(self.folder),
            "SLURM_UP_PORT": str(port),
            "SLURM_UP_DBD": str(int(accounting)),
            "SLURM_UP_PRIORITY": "multifactor" if accounting else "basic",
            **({"SLURM_UP_SCHED": parameters} if parameters else {}),
            "SLURM_UP_EXTRA": str(extra),
            "SLURM_UP_LICENSES": licenses,
            "SLURM_UP_NODES": str(nodes),
            "SLURM_UP_RACKS": str(racks),
            "SLURM_UP_TOPOLOGY": topology,
            "SLURM_UP_WEIGHTS": weights,
            "SLURM_UP_CPUS": cpus,
            "SLURM_UP_MEM": memory,
            "SLURM_UP_GPUS": gpus,
            "SLURM_CONF": str(self.folder / "etc" / "slurm.conf"),
            "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
        }
        self.conf = self.folder / "etc" / "slurm.conf"
        self.log = self.folder / "log" / "slurmctld.log"

    def __enter__(self) -> Cluster:
        try:
            self.up("start")
        except Exception:
            self.up("clean")  # its daemons keep the ports
            raise
        if not self.accounting:
            return self
        for name, (parent, shares) in ACCOUNTS.items():
            self.call("sacctmgr", "-i", "-Q", "add", "account", name, f"parent={parent}", f"fairshare={shares}")
        for name, priority in QUALITIES.items():
            self.call("sacctmgr", "-i", "-Q", "add", "qos", name, check=False)
            self.call("sacctmgr", "-i", "-Q", "modify", "qos", name, "set", f"priority={priority}")
        for (account, user), shares in self.users().items():
            self.call("sacctmgr", "-i", "-Q", "add", "user", user, f"account={account}", f"fairshare={shares}")
        self.call("sacctmgr", "-i", "-Q", "modify", "user", "set", "qos=normal,high", f"where account={','.join(ACCOUNTS)}")
        return self

    def __exit__(self, *_: object) -> None:
        self.up("clean")

    def up(self, command: str) -> None:
        """Run `slurm-up.sh`; raises RuntimeError with its output if it fails."""
        done = subprocess.run([UP, command], env=self.env, capture_output=True, text=True, timeout=180)
        if done.returncode:
            raise RuntimeError(f"slurm-up.sh {command}: {done.stdout}{done.stderr}")

    def users(self) -> dict[tuple[str, str], int]:
        """Return (account, user) -> shares; without root every user is the caller, since only root submits for others."""
        if os.geteuid() == 0:
            return {key: shares for key, shares in USERS.items() if _exists(key[1])}
        return {(account, getpass.getuser()): shares for (account, _), shares in USERS.items()}

    def call(self, *command: str, check: bool = True) -> str:
        """Run a client of Slurm and return its output."""
        words = [word for part in command for word in (part.split() if part.startswith("where ") else [part])]
        done = subprocess.run(words, env=self.env, capture_output=True, text=True, timeout=60)
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def submit(self, account: str, user: str, *options: str, seconds: int) -> int:
        """Submit a job that sleeps and return its id."""
        uid = [f"--uid={user}"] if user != getpass.getuser() else []
        return self.run(*uid, f"--account={account}", *options, seconds=seconds)

    def run(self, *options: str, seconds: float) -> int:
        """Submit a job of the caller that sleeps and return its id."""
        script = self.folder / "sleep.sh"
        if not script.exists():
            script.write_text('#!/bin/sh\nexec sleep "$1"\n')
        fixed = ("--parsable", "--chdir=/tmp", "--output=/dev/null")
        return int(self.call("sbatch", *fixed, *options, str(script), str(seconds)))

    def change(self, **values: str) -> None:
        """Replace keys of slurm.conf and restart Slurm."""
        self.up("stop")
        text = self.conf.read_text()
        for key, value in values.items():
            text = re.sub(rf"(?m)^{key}=.*\n", "", text) + f"{key}={value}\n"
        self.conf.write_text(text)
        self.up("start")

    def public_conf(self) -> str:
        """Return the lines of slurm.conf that affect scheduling."""
        lines = [line for line in self.conf.read_text().splitlines() if line.startswith(PUBLIC_KEYS)]
        return "\n".join(re.sub(r" Node(Hostname|Addr)=\S+| Port=\S+", "", line) for line in lines) + "\n"


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def wait_until(instant: float) -> None:
    """Sleep until a time (s since 1970)."""
    while (left := instant - time.time()) > 0:
        time.sleep(left)
