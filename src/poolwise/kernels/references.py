"""Named tuples of arrays passed to the steps of a kernel by reference, through Numba's internals (see `numba_internals`).

Numba passes a tuple of arrays word by word: seven words per array, so that a state of a hundred arrays becomes 700 arguments of
each call, and half the time to compile a kernel goes into writing them out. An entry therefore stores each of its tuples once,
and its steps receive a pointer to it. No field changes while a kernel runs: the contents of arrays do, but not their addresses.
Each load of a field states this, so LLVM loads it once and keeps it in a register, as it would keep an argument.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]  # ships no types
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.registry import cpu_target
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, lower_getattr_generic, register_model

from poolwise.kernels.lowering import DATA, ITEM_SIZE, ITEMS, SHAPE, STRIDES


class TupleReference(types.Type):
    """Pointer to a named tuple that does not change.

    Its name is short, since it is part of the name of each compiled function.
    """

    def __init__(self, target: Any) -> None:
        self.target = target
        digest = hashlib.sha256(str(target).encode()).hexdigest()[:12]
        super().__init__(f"ref({target.instance_class.__name__}.{digest})")

    def field(self, name: str) -> tuple[int, types.Type]:
        """Return the position and the type of a field."""
        position = self.target.fields.index(name)
        return position, self.target.types[position]


@register_model(TupleReference)
class _ReferenceModel(models.OpaqueModel):
    """A pointer that is marked as valid in arguments, so that LLVM may load a field before it is known to be needed."""

    def from_argument(self, builder: Any, value: Any) -> Any:
        """Return the argument."""
        value.attributes.dereferenceable = _size(cpu_target.target_context.get_value_type(self.fe_type.target))
        value.add_attribute("noalias")
        return value


@cache
def _size(layout: Any) -> int:
    """Return the bytes that a value takes, which LLVM computes slowly."""
    return int(cpu_target.target_context.get_abi_sizeof(layout))


@infer_getattr
class _ReferenceAttribute(AttributeTemplate):
    """Fields of a reference; a field that is a named tuple is a reference too."""

    key = TupleReference

    def generic_resolve(self, reference: Any, name: str) -> Any:  # type: ignore[override]  # its type is that of a stub
        """Return the type of a field."""
        return _passed(reference.field(name)[1]) if name in reference.target.fields else None


@cache
def _passed(kind: types.Type) -> types.Type:
    """Return the type in which a field or an argument of a type is passed."""
    return TupleReference(kind) if isinstance(kind, types.BaseNamedTuple) else kind


@lower_getattr_generic(TupleReference)  # type: ignore[untyped-decorator]  # has no types
def _field(context: Any, builder: Any, reference: TupleReference, pointer: Any, name: str) -> Any:
    """Load a field, or return the pointer to it if it is a named tuple."""
    position, kind = reference.field(name)
    layout = context.get_value_type(reference.target)
    at = cgutils.gep_inbounds(builder, builder.bitcast(pointer, layout.as_pointer()), 0, position)
    if isinstance(kind, types.BaseNamedTuple):
        return builder.bitcast(at, cgutils.voidptr_t)
    if isinstance(kind, types.Array) and kind.layout == "C" and kind.ndim == 1:
        return _load_vector(context, builder, at, kind)
    return _load(builder, at, context.get_value_type(kind))


def _load_vector(context: Any, builder: Any, pointer: Any, kind: types.Array) -> Any:
    """Load the address and the length of an array of one dimension, which determine all its words that kernels use."""
    words = context.get_value_type(kind)
    size = ir.Constant(words.elements[ITEM_SIZE], _size(context.get_data_type(kind.dtype)))
    address = _load(builder, cgutils.gep_inbounds(builder, pointer, 0, DATA), words.elements[DATA])
    length = _load(builder, cgutils.gep_inbounds(builder, pointer, 0, ITEMS), words.elements[ITEMS])
    value = ir.Constant(words, ir.Undefined)
    known = (ITEMS, length), (ITEM_SIZE, size), (DATA, address), ((SHAPE, 0), length), ((STRIDES, 0), size)
    for position, word in known:
        value = builder.insert_value(value, word, position)
    return value


def _load(builder: Any, pointer: Any, layout: Any) -> Any:
    """Load a value leaf by leaf, and mark each load as invariant."""
    if isinstance(layout, ir.LiteralStructType | ir.ArrayType):
        value = ir.Constant(layout, ir.Undefined)
        for position in range(len(layout.elements) if isinstance(layout, ir.LiteralStructType) else layout.count):
            inner = layout.elements[position] if isinstance(layout, ir.LiteralStructType) else layout.element
            leaf = _load(builder, cgutils.gep_inbounds(builder, pointer, 0, position), inner)
            value = builder.insert_value(value, leaf, position)
        return value
    load = builder.load(pointer)
    load.set_metadata("invariant.load", builder.module.add_metadata([]))
    return load


@intrinsic
def by_reference(typing_context: Any, arguments: Any) -> Any:
    """Return a tuple of arguments in which each named tuple is a reference to a copy on the stack."""
    passed = types.Tuple([_passed(kind) for kind in arguments])

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return context.make_tuple(
            builder,
            signature.return_type,
            [
                _stored(context, builder, value) if isinstance(kind, types.BaseNamedTuple) else value
                for kind, value in zip(arguments, cgutils.unpack_tuple(builder, values[0]), strict=True)
            ],
        )

    return passed(arguments), generate


def _stored(context: Any, builder: Any, value: Any) -> Any:
    """Store a value and return a pointer to it.

    The pointer must only be passed to a function that is not inlined: LLVM might move a load of a field before the store.
    """
    return builder.bitcast(cgutils.alloca_once_value(builder, value), cgutils.voidptr_t)
