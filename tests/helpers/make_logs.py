"""Generate the logs in tests/data/logs from the Parallel Workloads Archive: `python -m tests.helpers.make_logs FOLDER`.

Rows and header are those of the archive, without the spaces that align columns; larger logs are cut after their first rows.
"""

import gzip
import sys
from pathlib import Path

from tests.helpers.data import LOGS

MADE = {
    "hpc2n-2002.swf.gz": ("hpc_hpc2n_excerpt_2002/hpc2n.swf.gz", None),
    "nasa-ipsc-1993.swf.gz": ("hpc_nasa_ipsc_1993/NASA-iPSC-1993-3.1-cln.swf.gz", 5000),
    "unilu-gaia-2014.swf.gz": ("hpc_unilu_gaia_2014/UniLu-Gaia-2014-2.swf.gz", 9000),
}


def plain(text: str, most: int | None) -> str:
    """Return the header and the first rows (all if `most` is None), one space between fields."""
    lines = text.splitlines()
    header = [line.rstrip() for line in lines if line.startswith(";")]
    rows = [" ".join(line.split()) for line in lines if line.strip() and not line.startswith(";")]
    note = f"; Note: {'all' if most is None else f'the first {most:,}'} rows, for the tests of Poolwise"
    return "\n".join([*header, note, *rows[:most]]) + "\n"


def main(source: Path) -> None:
    """Write the logs, with reproducible bytes."""
    for name, (path, most) in MADE.items():
        text = plain(gzip.decompress((source / path).read_bytes()).decode(), most)
        (LOGS / name).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
