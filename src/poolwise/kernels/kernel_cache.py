"""Files of compiled kernels, which any process on any computer of their target can load (through Numba's internals).

Numba's own cache keeps one index per function, in which two processes that compile at the same time lose each other's entries,
and keys it by the location and the modification time of the sources. Here each compiled function has a file of its own, named
by the types of its arguments. The folder is named by everything else that machine code depends on (see `jit.cache_folder`), so
a checkout or an installation elsewhere loads the same files.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps


class KernelCache(_Cache):
    """Compiled versions of one function.

    Parameters
    ----------
    function
        The Python function.
    folders
        Folders that may hold its files. The first is written to; the others are only read.
    """

    def __init__(self, function: Callable[..., object], folders: Sequence[Path]) -> None:
        self._name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        self._folders = folders
        self._enabled = True

    @property
    def cache_path(self) -> str:
        """Folder to which compiled versions are written."""
        return str(self._folders[0])

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the compiled version for the types of a signature, or None if there is no file of it."""
        target_context.refresh()
        for folder in self._folders if self._enabled else ():
            try:
                content = self._file(folder, signature).read_bytes()
            except OSError:
                continue
            return CompileResult._rebuild(target_context, *pickle.loads(content))
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Write a compiled version atomically."""
        if not self._enabled or result.library.has_dynamic_globals:
            return
        file = self._file(self._folders[0], signature)
        part = file.with_name(f"{file.name}.{os.getpid()}.part")
        part.write_bytes(dumps(result._reduce()))
        part.replace(file)

    def _file(self, folder: Path, signature: Any) -> Path:
        return folder / f"{self._name}-{hashlib.sha256(str(signature).encode()).hexdigest()[:16]}.nbc"

    def enable(self) -> None:
        """Load and write files from now on."""
        self._enabled = True

    def disable(self) -> None:
        """Neither load nor write files from now on."""
        self._enabled = False

    def flush(self) -> None:
        """Remove the files of the function."""
        for file in self._folders[0].glob(f"{self._name}-*.nbc"):
            file.unlink(missing_ok=True)
