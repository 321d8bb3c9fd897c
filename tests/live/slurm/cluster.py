"""A real Slurm of 16 small nodes for tests: starts it, asks it, stops it. `slurm-up.sh` beside this file does the work."""

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
KEPT = (
    "ClusterName",
    "Scheduler",
    "SelectType",
    "Priority",
    "FairShare",
    "AccountingStorageEnforce",
    "DefMem",
    "NodeName",
    "PartitionName",
)
"""How the lines of slurm.conf begin that say what the scheduler decides; the others name places on this machine."""


def why_not(accounting: bool = True) -> str:
    """Say what is missing to start a Slurm here; empty if nothing."""
    needed = ("slurmctld", "slurmd", "sbatch", "munged", *(("slurmdbd", "mariadbd") if accounting else ()))
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    missing = [name for name in needed if shutil.which(name, path=path) is None]
    if not missing:
        return ""
    return f"{', '.join(missing)} not found: `tests/live/slurm/packages.sh` installs what is needed, as root"


class Cluster:
    """A running Slurm, with accounts, users and two qualities of service if it keeps accounts.

    Parameters
    ----------
    folder
        Where it keeps everything; deleted at the end.
    lines
        More lines of slurm.conf.
    parameters
        SchedulerParameters; "" for those that `slurm-up.sh` says.
    accounting
        Whether it keeps accounts, which takes half a minute to start.
    licences
        Licences beside the pools of the racks, as slurm.conf names them.
    """

    def __init__(
        self,
        lines: str,
        parameters: str = "",
        port: int = int(os.environ.get("SLURM_UP_PORT", "18000")),
        *,
        accounting: bool = True,
        licences: str = "",
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
            "SLURM_UP_LICENSES": licences,
            "SLURM_CONF": str(self.folder / "etc" / "slurm.conf"),
            "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
        }
        self.conf = self.folder / "etc" / "slurm.conf"
        self.log = self.folder / "log" / "slurmctld.log"

    def __enter__(self) -> Cluster:
        self.up("start")
        if not self.accounting:
            return self
        for name, (parent, shares) in ACCOUNTS.items():
            self.ask("sacctmgr", "-i", "-Q", "add", "account", name, f"parent={parent}", f"fairshare={shares}")
        for name, priority in QUALITIES.items():
            self.ask("sacctmgr", "-i", "-Q", "add", "qos", name, check=False)
            self.ask("sacctmgr", "-i", "-Q", "modify", "qos", name, "set", f"priority={priority}")
        for (account, user), shares in self.users().items():
            self.ask("sacctmgr", "-i", "-Q", "add", "user", user, f"account={account}", f"fairshare={shares}")
        self.ask("sacctmgr", "-i", "-Q", "modify", "user", "set", "qos=normal,high", f"where account={','.join(ACCOUNTS)}")
        return self

    def __exit__(self, *_: object) -> None:
        self.up("clean")

    def up(self, command: str) -> None:
        """Run `slurm-up.sh`; its output is shown only when it fails."""
        done = subprocess.run([UP, command], env=self.env, capture_output=True, text=True, timeout=180)
        if done.returncode:
            raise RuntimeError(f"slurm-up.sh {command}: {done.stdout}{done.stderr}")

    def users(self) -> dict[tuple[str, str], int]:
        """(account, user) -> shares; without root every user is the caller, since only root submits for others."""
        if os.geteuid() == 0:
            return {key: shares for key, shares in USERS.items() if _exists(key[1])}
        return {(account, getpass.getuser()): shares for (account, _), shares in USERS.items()}

    def ask(self, *command: str, check: bool = True) -> str:
        """Run a command of Slurm and return what it prints."""
        words = [word for part in command for word in (part.split() if part.startswith("where ") else [part])]
        done = subprocess.run(words, env=self.env, capture_output=True, text=True, timeout=60)
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def submit(self, account: str, user: str, *options: str, seconds: int) -> int:
        """Submit a job that sleeps; returns its id."""
        whose = [f"--uid={user}"] if user != getpass.getuser() else []
        return self.run(*whose, f"--account={account}", *options, seconds=seconds)

    def run(self, *options: str, seconds: float) -> int:
        """Submit a job of the caller that sleeps; returns its id."""
        script = self.folder / "sleep.sh"
        if not script.exists():
            script.write_text('#!/bin/sh\nexec sleep "$1"\n')
        fixed = ("--parsable", "--chdir=/tmp", "--output=/dev/null")
        return int(self.ask("sbatch", *fixed, *options, str(script), str(seconds)))

    def change(self, **values: str) -> None:
        """Replace keys of slurm.conf and start the controller anew."""
        self.up("stop")
        text = self.conf.read_text()
        for key, value in values.items():
            text = re.sub(rf"(?m)^{key}=.*\n", "", text) + f"{key}={value}\n"
        self.conf.write_text(text)
        self.up("start")

    def public_conf(self) -> str:
        """The lines of slurm.conf that say what the scheduler decides."""
        lines = [line for line in self.conf.read_text().splitlines() if line.startswith(KEPT)]
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
