"""Rows in the format of the disaggregated DLRM trace, which may not be redistributed, and a synthetic trace of such rows."""

import random
from pathlib import Path

from tests.helpers.data import available_cases

HEADER = (
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,memory_limit,"
    "disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time"
)
HN = "instance_{},HN,app_{},8,8,1,1,25,25,40.0,40.0,85.0,100.0,4,{}"
CN = "instance_{},CN,app_{},64,64,0,0,1,1,320.0,320.0,255.5,300.0,-1,{}"
REAL: list[Path] = [path for (path,) in available_cases(("gpu_disagg_alibaba_dlrm_v2025/disaggregated_DLRM_trace.csv.gz",))]
"""The real trace, if it is available."""


def table(tmp_path: Path, *rows: str) -> Path:
    path = tmp_path / "dlrm.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return path


def synthetic_trace(tmp_path: Path, instances: int = 3000) -> Path:
    """Write a trace like the real one: 20 applications of both roles, with equal requests per application, in creation order.

    A fifth of the instances exists for the whole trace, a tenth from its beginning, and a sixth until its end; a few never
    run. Some times have floating-point noise. One CPU instance requests as much as the largest in the real trace.
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
        span = dice.random()
        times = [",,", f",,{ended}.0", f"{born},{born},", f"{born},{born},{ended}.0"][
            (span > 0.2) + (span > 0.3) + (span > 0.47)
        ]
        if number < 20 or dice.random() < 0.3:
            requests = f"HN,app_{app},{gpu_cpus},{gpu_cpus},1,1,25,25,{5 * gpu_cpus}.0,{5 * gpu_cpus}.0,85.0,100.0,4"
        else:
            requests = f"CN,app_{app},{cpus},{cpus},0,0,{rdma},{rdma},{5 * cpus}.0,{5 * cpus}.0,255.5,300.0,-1"
        rows.append(f"instance_{number},{requests},{times}")
    rows[-1] = f"instance_{instances - 1},CN,app_0,192,192,0,0,100,100,1000.0,1000.0,996.0,996.0,2,,,{clock + 9}.0"
    return table(tmp_path, *rows)
