"""Interruption before a command runs."""

import pytest

import poolwise.cli


def test_interrupt_while_loading_prints_no_traceback(monkeypatch, capsys):
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("poolwise.cli.app._discover", interrupted)
    with pytest.raises(SystemExit) as ended:
        poolwise.cli.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "error: interrupted while loading; nothing was started\n"
