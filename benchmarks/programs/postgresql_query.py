"""PostgreSQL query (Debian: postgresql): join, group and sort two tables of random rows in shared buffers.

The first argument is the data folder, filled on the first run. If started by root, the server runs as the user 'postgres'.
"""

import os
import subprocess
import sys
from pathlib import Path

folder, times = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 4
user = "postgres" if os.geteuid() == 0 else None
MAKE = """
select setseed(0);
create table customer as select k as id, (random() * 50)::int as region, repeat(md5(k::text), 2) as name
  from generate_series(1, 150000) k;
create table purchase as select k as id,
  (random() * 149999)::int + 1 as customer, random() * 100 as amount, md5(k::text) as what
  from generate_series(1, 900000) k;
analyze;
"""
ASK = """
set work_mem = '96MB';
select count(*) from (select c.region, c.id, sum(p.amount) total, max(p.what) from purchase p
  join customer c on c.id = p.customer group by c.region, c.id order by total desc) found;
"""


def call(*command: str, text: str | None = None) -> str:
    """Run a program as the server's user and return its output."""
    done = subprocess.run(command, input=text, text=True, check=True, capture_output=True, user=user, cwd="/")
    return done.stdout


fresh = not folder.exists()
if fresh:
    folder.mkdir(mode=0o700, parents=True)
    if user:
        import shutil

        shutil.chown(folder, user)
    call("initdb", "-D", str(folder), "-A", "trust")
options = (
    f"-k {folder} -c listen_addresses= -c shared_buffers=160MB -c fsync=off -c max_parallel_workers_per_gather=0 -c jit=off"
)
server = ["pg_ctl", "-D", str(folder), "-w", "-o", options]
subprocess.run([*server, "-l", str(folder / "log"), "start"], check=True, stdout=subprocess.DEVNULL, user=user, cwd="/")
try:
    ask = ["psql", "-h", str(folder), "-d", "postgres", "-qAt", "-v", "ON_ERROR_STOP=1"]
    if fresh:
        call(*ask, text=MAKE)
    rows = [call(*ask, text=ASK).strip() for _ in range(times)]
finally:
    call(*server, "-m", "fast", "stop")
print(f"{rows[-1]} groups, {times} times")
