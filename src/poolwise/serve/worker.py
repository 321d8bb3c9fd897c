"""Worker process of the server: runs commands one after another, so that modules and kernels stay loaded between questions.

Each line on stdin is a JSON list of arguments. Messages and progress go to stderr as on the command line. After each command, a
line that starts with `END` contains the exit code and the JSON output.
"""

from __future__ import annotations

import io
import json
import re
import select
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from poolwise.errors import PoolwiseError
from poolwise.hashing import canonical, digest
from poolwise.serve.command import ASK, END
from poolwise.serve.folder import ASKED, AskedRun
from poolwise.studies import Study, load
from poolwise.studies.cell_simulation import Cells
from poolwise.studies.cells import workload_of
from poolwise.studies.study import parse_setting
from poolwise.user_code import loads_user_code

ALONE = 50_000
"""Maximum number of jobs, over all runs of a question, for which starting more processes takes longer than the runs."""
_NAMES_CODE = re.compile(r"\.py\b|\w:[A-Z]")
"""References to classes outside Poolwise in a study file."""


def work(command_line: Callable[[], None], load_commands: Callable[[], object]) -> None:
    """Run commands until stdin ends, or until one has loaded user code, which may change before the next command."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _warm_up(Path(sys.argv[1]), load_commands)
    while line := sys.stdin.readline():
        arguments = json.loads(line)
        code, answer = _ask(command_line, *arguments[1:]) if arguments[0] == ASK else _run(command_line, arguments)
        last = loads_user_code()
        print(END + json.dumps({"code": code, "answer": answer, "last": last}), file=sys.stderr, flush=True)
        if last:
            return


def _run(command_line: Callable[[], None], arguments: list[str]) -> tuple[int, Any]:
    """Run a command of Poolwise, and return its exit code and its JSON output."""
    sys.argv, code = ["poolwise", *arguments], 1
    with redirect_stdout(io.StringIO()) as output:
        try:
            command_line()
        except SystemExit as end:
            code = int(end.code or 0)
        except Exception:
            traceback.print_exc()
    return code, json.loads(output.getvalue() or "null")


def _ask(command_line: Callable[[], None], study_file: str, *settings: str) -> tuple[int, Any]:
    """Run a study with settings in a folder of its own; return the folder's name, and the measured population."""
    file, set_ = Path(study_file), dict(parse_setting(setting) for setting in settings)
    try:
        study = load(file, set_)
    except PoolwiseError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return problem.exit_code, None
    folder = file.with_suffix(ASKED) / _key(study)
    request = AskedRun.read(folder)
    if request is None or loads_user_code():
        options = ["--out", str(folder), "--json", *(["--jobs", "1"] if _has_few_jobs(study) else [])]
        set_options = [word for setting in settings for word in ("--set", setting)]
        code, answer = _run(command_line, ["run", study_file, *options, *set_options])
        if code:
            return code, None
        request = request or AskedRun.now(set_)
        request = replace(request, population=answer["population"])
        request.write(folder)
    return 0, {"results": f"{folder.parent.name}/{folder.name}", "population": request.population}


def _has_few_jobs(study: Study) -> bool:
    """Return whether all runs together have fewer than `ALONE` jobs, assuming that all workloads are as long as the first."""
    first = study.runs[0]
    try:
        jobs = first.workload.jobs or len(workload_of(first))
    except PoolwiseError:
        return False  # the command reports the problem
    return jobs * len(study.runs) < ALONE


def _key(study: Study) -> str:
    """Return a name for the runs of a study; it changes whenever the inputs, the code or the measurement change."""
    runs, costs = sorted(cell.key for cell in study.runs), sorted({repr(cell.costs) for cell in study.cells})
    return digest(canonical([study.sha256, runs, costs]))[:16]


def _warm_up(root: Path, load_commands: Callable[[], object]) -> None:
    """Load what the first command needs: commands, kernels of the studies in a folder, charts; stop as soon as one arrives."""
    from poolwise.report.figures import load_renderer

    files = sorted(root.glob("*.toml"))
    steps: list[Callable[[], object]] = [load_commands, *(partial(_load_kernels, file) for file in files)]
    for load_next in (*steps, load_renderer, _load_late_imports):
        if select.select([sys.stdin], [], [], 0)[0]:
            return
        load_next()


def _load_kernels(file: Path) -> None:
    """Load the kernels of a study file, unless it refers to user code."""
    try:
        if not _NAMES_CODE.search(file.read_text(encoding="utf-8")):
            Cells().prepare(load(file).runs)
    except (PoolwiseError, OSError, ValueError):
        return  # the command that needs the file reports the problem


def _load_late_imports() -> None:
    """Load the modules that commands import only when they compute or report something."""
    import poolwise.runner.progress
    import poolwise.studies.slow_runs  # noqa: F401
    from poolwise.metrics.intervals import student_t

    student_t(0.95, 2)
