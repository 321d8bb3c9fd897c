"""`poolwise compile`."""

from pathlib import Path

import pytest

import poolwise.kernels
from poolwise.cli import app as cli
from poolwise.cli.compile import families


@pytest.mark.long
def test_every_kernel_family_is_compiled(capsys):
    cli._discover()
    folders = {path.name for path in Path(poolwise.kernels.__file__).parent.iterdir() if (path / "__init__.py").is_file()}
    assert len(families()) == len(folders - {"common"}) + 1, "list scheduling counts twice: also on mixed nodes"
    assert cli.run(["compile"]) == 0
    out = capsys.readouterr().out
    assert all(f"{name}: " in out for name in families())
    assert "all kernels: " in out
