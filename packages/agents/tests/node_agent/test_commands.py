"""Tests of commands that fail, hang, print invalid text, or leave children behind."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path

import pytest

from poolwise_agents.node_agent.commands import CommandError, run_command
from tests.helpers.waiting import is_alive, longest_s, wait_until, wait_until_async

FOREVER = 3600
"""Seconds that no test waits for."""


def run(*arguments: str, limit_s: float = FOREVER) -> str:
    async def within_reason() -> str:
        async with asyncio.timeout(longest_s()):
            return await run_command(arguments, limit_s)

    return asyncio.run(within_reason())


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


def test_command_that_times_out_is_killed_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, wait_for = tmp_path / "child", asyncio.wait_for

    async def wait_for_after_start(process: Awaitable[int], limit_s: float) -> int:
        await wait_until_async(lambda: bool(read(file)), "the command has started its child")
        return await wait_for(process, limit_s)

    monkeypatch.setattr(asyncio, "wait_for", wait_for_after_start)
    with pytest.raises(CommandError, match=r"timed out after 0.2 s and was killed: waiting"):
        run("/bin/sh", "-c", f"echo waiting; sleep {FOREVER} & echo $! > {file}; wait", limit_s=0.2)
    wait_until(lambda: not is_alive(int(read(file))), "the child is killed")


def test_running_child_does_not_delay_the_result(tmp_path: Path) -> None:
    end, alive = tmp_path / "end", tmp_path / "alive"
    assert run("/bin/sh", "-c", f"(until [ -e {end} ]; do sleep 0.05; done; touch {alive}) & echo done") == "done"
    end.touch()
    wait_until(alive.exists, "the child still runs")


def test_command_has_no_input_and_is_killed_when_cancelled(tmp_path: Path) -> None:
    assert run("/bin/cat") == ""
    file = tmp_path / "process"

    async def story() -> None:
        task = asyncio.ensure_future(run_command(("/bin/sh", "-c", f"echo $$ > {file}; sleep {FOREVER}"), FOREVER))
        await wait_until_async(lambda: bool(read(file)), "the command has started")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())
    wait_until(lambda: not is_alive(int(read(file))), "the command is killed")


def read(file: Path) -> str:
    """Return the line of a file, empty while it is not complete."""
    text = file.read_text() if file.exists() else ""
    return text.strip() if text.endswith("\n") else ""
