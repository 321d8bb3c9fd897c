"""Use of Numba's internals, limited to the versions listed in `jit.TESTED`.

It controls the translation of kernels to machine code: a kernel and its steps are compiled together, once.

By default, Numba optimizes each function together with all its callees and translates it to machine code, then repeats this for
its caller: a function six calls deep passes through LLVM seven times. A step is never run on its own, so it is left
untranslated until the kernel that calls it is complete. Since a step then has no other callers, LLVM may change its calling
convention: it drops arguments that the step does not read, and passes fields in registers.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]  # ships no types
from numba.core import errors, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import IRLegalization, NoPythonBackend, NopythonTypeInference, PreLowerStripPhis
from numba.core.untyped_passes import (
    DeadBranchPrune,
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    RewriteSemanticConstants,
    TranslateByteCode,
)

from poolwise.kernels.lowering import KernelLowering

Linkage: Any = llvm.Linkage


class KernelCode(JITCodeLibrary):
    """Code library of a kernel with all its steps."""

    def finalize(self) -> None:
        """Link all steps, including those that only other steps call, then optimize and translate."""
        pending = list(self._linking_libraries)
        while pending:
            library = pending.pop()
            if isinstance(library, StepCode):
                new = [called for called in library._linking_libraries if called not in self._linking_libraries]
                self._linking_libraries += dict.fromkeys(new)
                pending += dict.fromkeys(new)
        super().finalize()

    def _optimize_final_module(self) -> None:
        """Optimize the module, with its steps marked as internal."""
        self._own_steps()
        super()._optimize_final_module()

    def _own_steps(self) -> None:
        """Make the steps internal to the module."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.linkonce_odr:
                function.linkage = Linkage.internal


class EntryCode(KernelCode):
    """Code library of a kernel that processes events: mostly branches, so one optimizer pass without vectorization suffices."""

    unrolls = True

    def _optimize_functions(self, module: Any) -> None:
        """Set the data layout only; functions are optimized together, when the kernel is complete."""
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Run one `-O3` pipeline."""
        self._own_steps()
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = options.loop_interleaving = options.slp_vectorization = False
        options.loop_unrolling = self.unrolls
        builder = llvm.create_pass_builder(self._codegen._tm, options)
        builder.getModulePassManager().run(self._final_module, builder)


class LongEntryCode(EntryCode):
    """Code library of a kernel whose many steps take long to compile if their loops are unrolled, without running faster."""

    unrolls = False


class StepCode(JITCodeLibrary):
    """Code library of a step and its callees, neither optimized nor translated."""

    def _optimize_functions(self, module: Any) -> None:
        """Set the data layout only; the kernel optimizes the step."""
        module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        """Mark the library as ready to be linked, together with those that it calls; it has no machine code."""
        self._raise_if_finalized()
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """Return the module, whose functions may be defined by several kernels."""
        if self._shared_module is None:
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage == Linkage.external:
                    function.linkage = Linkage.linkonce_odr
            self._shared_module = self._final_module
        return self._shared_module

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: the function has no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> StepCode:
        """The library itself, which receives the environment of the function: see `set_env`."""
        return self

    def set_env(self, name: str, environment: object) -> None:
        """Discard the Python objects that an error might refer to: steps raise no errors."""


class _Shortcuts:
    """Context in which Numba does some of its work once or not at all while it compiles a kernel and its steps.

    Signatures of operators are resolved once for the same types and compiler flags: Numba tries about twenty implementations of
    an operator at each use, and compares all flags for each of them. Error messages have no colors, since Numba raises and
    catches thousands of errors, and queries the terminal for each. Garbage collection is disabled, since nearly all objects
    stay alive.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Any] = {}
        self._flags: tuple[Any, str] = None, ""
        self._depth = 0
        self._function: Any = types.Function
        self._resolve = self._function.get_call_type

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth == 1:
            self._function.get_call_type = self._method()
            self._colors, errors._termcolor_inst = errors._termcolor_inst, _NoColors()  # type: ignore[attr-defined]
            self._collects = gc.isenabled()
            gc.disable()

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._function.get_call_type = self._resolve
            errors._termcolor_inst = self._colors  # type: ignore[attr-defined]
            if self._collects:
                gc.enable()

    def _method(self) -> Any:
        def get_call_type(function: Any, context: Any, args: Any, kws: Any) -> Any:
            flags = ConfigStack.top_or_none()
            if kws or flags is None:
                return self._resolve(function, context, args, kws)
            if flags is not self._flags[0]:
                self._flags = flags, repr(flags)
            key = self._flags[1], function, tuple(args)
            if key not in self._known:
                self._known[key] = self._resolve(function, context, args, kws)
            return self._known[key]

        return get_call_type


class _NoColors:
    """Color scheme of Numba's errors that returns each part of a message as it is."""

    def __getattr__(self, part: str) -> Callable[[str], str]:
        return str


_shortcuts = _Shortcuts()


PASSES = (
    TranslateByteCode,
    FixupArgs,
    IRProcessing,
    RewriteSemanticConstants,
    DeadBranchPrune,
    GenericRewrites,
    ReconstructSSA,
    NopythonTypeInference,
    PreLowerStripPhis,
    IRLegalization,
    KernelLowering,
    NoPythonBackend,
)
"""Numba's passes that kernels need, since they have no closures, comprehensions, whole-array expressions or parallel loops."""


class KernelCompiler(CompilerBase):
    """Numba's compiler with another code library, fewer passes, and `KernelLowering`."""

    code: type[JITCodeLibrary] = KernelCode

    def _compile_core(self) -> Any:
        """Compile with `_Shortcuts`."""
        with _shortcuts:
            return super()._compile_core()

    def define_pipelines(self) -> list[Any]:
        """Return the compiler passes: the usual ones except those for features that kernels lack, and with `KernelLowering`."""
        state = self.state
        state.library = self.code(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        passes = PassManager("kernel")
        for each in PASSES:
            passes.add_pass(each, each._name)
        passes.finalize()
        return [passes]


class EntryCompiler(KernelCompiler):
    """Compiler of entries."""

    code = EntryCode


class LongEntryCompiler(KernelCompiler):
    """Compiler of entries with many steps."""

    code = LongEntryCode


class StepCompiler(KernelCompiler):
    """Compiler of steps."""

    code = StepCode


class BodyCode(StepCode):
    """Code library of the step that an entry calls with references: it is not inlined into the entry, see `references`."""

    def add_ir_module(self, module: Any) -> None:
        """Add a module whose functions are not inlined."""
        for function in module.functions:
            if not function.is_declaration:
                function.attributes.add("noinline")
        super().add_ir_module(module)


class HintedCode(StepCode):
    """Code library of a step that LLVM inlines more readily than others."""

    def add_ir_module(self, module: Any) -> None:
        """Add a module whose functions are preferably inlined."""
        for function in module.functions:
            if not function.is_declaration:
                function.attributes.add("inlinehint")
        super().add_ir_module(module)


class HintedCompiler(KernelCompiler):
    """Compiler of steps that are preferably inlined."""

    code = HintedCode


class BodyCompiler(KernelCompiler):
    """Compiler of the bodies of entries."""

    code = BodyCode


# Options of `numba.njit` for each decorator of `jit`
KERNEL: dict[str, Any] = {"pipeline_class": KernelCompiler, "no_cfunc_wrapper": True}
ENTRY: dict[str, Any] = {"pipeline_class": EntryCompiler, "_nrt": False, "no_cfunc_wrapper": True}
LONG_ENTRY: dict[str, Any] = {**ENTRY, "pipeline_class": LongEntryCompiler}
STEP: dict[str, Any] = {
    "pipeline_class": StepCompiler,
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
BODY: dict[str, Any] = {**STEP, "pipeline_class": BodyCompiler}
INLINED: dict[str, Any] = {**STEP, "pipeline_class": HintedCompiler}
