"""Tests of commands that fail, hang, print invalid text, or leave children behind."""

import asyncio
import time
from pathlib import Path

import pytest

from poolwise.live.node_agent.commands import CommandError, run_command


def run(*arguments: str, limit_s: float = 5.0) -> str:
    return asyncio.run(run_command(arguments, limit_s))


def test_output_is_made_printable_and_truncated() -> None:
    assert run("/bin/sh", "-c", "printf 'a\\033[1mb\\tc'") == "a [1mb c"
    assert run("/bin/echo", "$HOME;`id`") == "$HOME;`id`"
    assert len(run("/bin/sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; printf '\\377'")) == 400
    assert run("/bin/sh", "-c", "env | cut -d= -f1 | sort | tr '\\n' ,").strip(",") in (
        "PATH,PWD,_",
        "PATH,PWD",
        "PATH,PWD,SHLVL,_",
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("/bin/sh", "-c", "echo no fabric >&2; exit 3"), "exit status 3: no fabric"),
        (("/bin/sh", "-c", "kill -9 $$"), "killed by signal 9"),
        (("/nonexistent/program",), "cannot start /nonexistent/program: No such file"),
        (("/etc/passwd",), "cannot start /etc/passwd: Permission denied"),
    ],
)
def test_error_states_the_cause(arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        run(*arguments)


def test_command_that_times_out_is_killed_with_its_children(tmp_path: Path) -> None:
    file = tmp_path / "alive"
    began = time.monotonic()
    with pytest.raises(CommandError, match=r"timed out after 0.2 s and was killed: waiting"):
        run("/bin/sh", "-c", f"echo waiting; (sleep 0.6; touch {file}) & sleep 60", limit_s=0.2)
    assert time.monotonic() - began < 3
    time.sleep(0.7)
    assert not file.exists()


def test_running_child_does_not_delay_the_result(tmp_path: Path) -> None:
    file = tmp_path / "alive"
    began = time.monotonic()
    assert run("/bin/sh", "-c", f"(sleep 0.5; touch {file}) & echo done") == "done"
    assert time.monotonic() - began < 0.45
    time.sleep(0.6)
    assert file.exists()


def test_command_has_no_input_and_is_killed_when_cancelled(tmp_path: Path) -> None:
    assert run("/bin/cat") == ""
    file = tmp_path / "alive"

    async def story() -> None:
        task = asyncio.ensure_future(run_command(("/bin/sh", "-c", f"sleep 0.3; touch {file}"), 5))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.4)

    asyncio.run(story())
    assert not file.exists()
