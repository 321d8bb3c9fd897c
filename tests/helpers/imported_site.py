"""The files that `poolwise import slurm` writes for a small site, with a study that varies an interval of Slurm's backfill."""

import subprocess
import sys
from pathlib import Path

CONF = """\
ClusterName=minster
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=bf_interval=60
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightJobSize=2000
NodeName=n[01-28] Sockets=2 CoresPerSocket=16 RealMemory=262144
NodeName=fat[1-4] CPUs=32 RealMemory=524288 Feature=large
PartitionName=batch Nodes=ALL Default=YES MaxTime=7-0
"""
BF_INTERVAL = "scheduler.backfill.settings.bf_interval"


def write(folder: Path) -> Path:
    """Import the site to a folder; replace the orders of its study by an interval, and return the imported folder."""
    (folder / "slurm.conf").write_text(CONF)
    words = ("import", "slurm", "--conf", "slurm.conf", "--log", "catalog:example-sacct.txt", "--out", "minster")
    subprocess.run([sys.executable, "-m", "poolwise", *words], cwd=folder, check=True, capture_output=True)
    study = folder / "minster" / "study.toml"
    before, _, after = study.read_text().partition("[scheduler]")
    after = after[after.index("[performance]") :].replace(
        '"scheduler.order" = ["fcfs", "sjf", "wfp3"]', f'"{BF_INTERVAL}" = [60]'
    )
    study.write_text(before.replace('machine = "machine.toml"', 'machine = "machine.toml"\nscheduler = "slurm.toml"') + after)
    return study.parent
