"""Compiled loops over arrays, one subpackage per kind of problem.

They cover list scheduling on racks with memory pools and on shared nodes, batch placement, task dispatch and minimum-cost flow.

Kernels read and write arrays only; they do not depend on jobs, machines or policies. The `state` modules, which define these
arrays, and `common.index` do not import Numba. All others do (`jit` documents the cache of compiled kernels), so an engine
imports them only when it starts a replay. A subpackage imports only itself and the subpackages listed in `jit.BUILDS_ON`, so
its compiled kernels stay valid until one of these changes.
"""

GENERIC = "x86-64-v3"
"""LLVM's name for the target of the kernels in a platform wheel: x86-64 CPUs with AVX2, BMI and FMA, made since 2013."""
GENERIC_FEATURES = (
    "+avx,+avx2,+bmi,+bmi2,+cmov,+crc32,+cx16,+cx8,+f16c,+fma,+fxsr,+lzcnt,+mmx,+movbe,+popcnt,+sahf,+sse,+sse2,+sse3,+sse4.1,"
    "+sse4.2,+ssse3,+xsave"
)
"""Features of `GENERIC`."""
