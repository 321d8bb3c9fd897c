"""Rows in the form of the disaggregated DLRM trace, which may not be passed on, and an invented trace of them."""

import random
from pathlib import Path

from tests.helpers.data import beside

HEADER = (
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,memory_limit,"
    "disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time"
)
HN = "instance_{},HN,app_{},8,8,1,1,25,25,40.0,40.0,85.0,100.0,4,{}"
CN = "instance_{},CN,app_{},64,64,0,0,1,1,320.0,320.0,255.5,300.0,-1,{}"
REAL: list[Path] = [path for (path,) in beside(("gpu_disagg_alibaba_dlrm_v2025/disaggregated_DLRM_trace.csv.gz",))]
"""The trace itself, where it is beside the project."""


def table(tmp_path: Path, *rows: str) -> Path:
    path = tmp_path / "dlrm.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return path


def invented(tmp_path: Path, instances: int = 3000) -> Path:
    """Make a trace as the real one is: 20 applications of both roles, whose instances ask alike, in the order of their births.

    A fifth is there from begin to end, a tenth from the begin on, a sixth to the end; a few never run; of some times the last
    digits are dust. One CPU instance asks for as much as any of the real trace.
    """
    dice = random.Random(2025)
    apps = [(dice.choice((48, 64, 96)), dice.choice((8, 12, 24)), dice.choice((1, 25, 100))) for _ in range(20)]
    rows, clock = [], 0
    for number in range(instances):
        app = number if number < 20 else dice.randrange(20)
        cpus, gpu_cpus, rdma = apps[app]
        clock += dice.randrange(900)
        born = f"{clock}.00000000000006" if number % 50 == 7 else f"{clock}.0"
        ended = clock if number % 300 == 11 else clock + dice.randrange(60, 200_000)
        kept = dice.random()
        times = [",,", f",,{ended}.0", f"{born},{born},", f"{born},{born},{ended}.0"][
            (kept > 0.2) + (kept > 0.3) + (kept > 0.47)
        ]
        if number < 20 or dice.random() < 0.3:
            asks = f"HN,app_{app},{gpu_cpus},{gpu_cpus},1,1,25,25,{5 * gpu_cpus}.0,{5 * gpu_cpus}.0,85.0,100.0,4"
        else:
            asks = f"CN,app_{app},{cpus},{cpus},0,0,{rdma},{rdma},{5 * cpus}.0,{5 * cpus}.0,255.5,300.0,-1"
        rows.append(f"instance_{number},{asks},{times}")
    rows[-1] = f"instance_{instances - 1},CN,app_0,192,192,0,0,100,100,1000.0,1000.0,996.0,996.0,2,,,{clock + 9}.0"
    return table(tmp_path, *rows)
