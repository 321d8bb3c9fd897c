"""Commands that fail, hang, print rubbish, or leave children behind."""

import asyncio
import time
from pathlib import Path

import pytest

from poolwise.live.node_agent.commands import CommandError, run_command


def run(*arguments: str, limit_s: float = 5.0) -> str:
    return asyncio.run(run_command(arguments, limit_s))


def test_what_is_printed_comes_back_cleaned_and_cut() -> None:
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
        (("/bin/sh", "-c", "kill -9 $$"), "ended by signal 9"),
        (("/nonexistent/program",), "cannot be started: No such file"),
        (("/etc/passwd",), "cannot be started: Permission denied"),
    ],
)
def test_failures_say_what_happened(arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        run(*arguments)


def test_what_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    file = tmp_path / "alive"
    began = time.monotonic()
    with pytest.raises(CommandError, match=r"took more than 0.2 s and was ended: waiting"):
        run("/bin/sh", "-c", f"echo waiting; (sleep 0.6; touch {file}) & sleep 60", limit_s=0.2)
    assert time.monotonic() - began < 3
    time.sleep(0.7)
    assert not file.exists()


def test_a_child_that_goes_on_does_not_hold_a_command_up(tmp_path: Path) -> None:
    file = tmp_path / "alive"
    began = time.monotonic()
    assert run("/bin/sh", "-c", f"(sleep 0.5; touch {file}) & echo done") == "done"
    assert time.monotonic() - began < 0.45
    time.sleep(0.6)
    assert file.exists()


def test_nothing_is_read_and_a_cancelled_command_is_ended(tmp_path: Path) -> None:
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
