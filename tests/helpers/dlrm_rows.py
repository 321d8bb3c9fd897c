"""Rows of the disaggregated DLRM trace."""

from pathlib import Path

HEADER = (
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,memory_limit,"
    "disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time"
)
HN = "instance_{},HN,app_{},8,8,1,1,25,25,40.0,40.0,85.0,100.0,4,{}"
CN = "instance_{},CN,app_{},64,64,0,0,1,1,320.0,320.0,255.5,300.0,-1,{}"
TRACE = Path("data") / "gpu_disagg_alibaba_dlrm_v2025" / "disaggregated_DLRM_trace.csv.gz"


def table(tmp_path: Path, *rows: str) -> Path:
    path = tmp_path / "dlrm.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return path
