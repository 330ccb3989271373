"""Arrow's C data interface (arrow.apache.org/docs/format/CDataInterface.html) of a table, by ctypes.

A consumer gets a stream of one batch. It moves the structures out of where they lie and calls their
`release` when it is done, from any thread; until then everything that they point at is kept here, by
the number in their `private_data`.
"""

from __future__ import annotations

import array
import ctypes
import itertools
from collections.abc import Sequence
from typing import Any

from .tables import Column, Table

_NULLABLE = 2  # ARROW_FLAG_NULLABLE
_CAPSULE = b"arrow_array_stream"


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_ReleaseSchema = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))
_ReleaseArray = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))
_ReleaseStream = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Stream))
_GetSchema = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))
_GetNext = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))
_GetError = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Stream))

_Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", _ReleaseSchema), ("private_data", ctypes.c_void_p)]
_Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", _ReleaseArray), ("private_data", ctypes.c_void_p)]
_Stream._fields_ = [
    ("get_schema", _GetSchema), ("get_next", _GetNext), ("get_last_error", _GetError),
    ("release", _ReleaseStream), ("private_data", ctypes.c_void_p)]

_kept: dict[int, Any] = {}
_numbers = itertools.count(1)


def stream_of(table: Table) -> object:
    """A PyCapsule with an ArrowArrayStream of the table's rows as one batch."""
    stream = _Stream(_get_schema, _get_next, _get_error, _release_stream, _keep([table, False]))
    _kept[ctypes.addressof(stream)] = stream  # until the capsule goes
    return _new_capsule(ctypes.addressof(stream), _CAPSULE, _free_capsule)


def _keep(things: Any) -> int:
    number = -next(_numbers)  # addresses are above 0
    _kept[number] = things
    return number & (2**64 - 1)


def _number_of(private_data: int) -> int:
    return private_data - 2**64


# --- what consumers call --------------------------------------------------------------------------


@_ReleaseSchema
def _release_schema(pointer: Any) -> None:
    _release(pointer.contents, _ReleaseSchema)


@_ReleaseArray
def _release_array(pointer: Any) -> None:
    _release(pointer.contents, _ReleaseArray)


# What a consumer has moved away has no `release` here any more.
def _release(structure: Any, nothing: Any) -> None:
    for i in range(structure.n_children):
        child = structure.children[i]
        if child.contents.release:
            child.contents.release(child)
    del _kept[_number_of(structure.private_data)]
    structure.release = nothing()


@_ReleaseStream
def _release_stream(pointer: Any) -> None:
    del _kept[_number_of(pointer.contents.private_data)]
    pointer.contents.release = _ReleaseStream()


@_GetSchema
def _get_schema(stream: Any, out: Any) -> int:
    table, _ = _kept[_number_of(stream.contents.private_data)]
    columns = [_schema(_format_of(column), name) for name, column in table.columns.items()]
    ctypes.memmove(out, ctypes.byref(_schema("+s", "", columns)), ctypes.sizeof(_Schema))
    return 0


@_GetNext
def _get_next(stream: Any, out: Any) -> int:
    state = _kept[_number_of(stream.contents.private_data)]
    table, is_done = state
    state[1] = True
    batch = _Array() if is_done else _batch(table)  # without `release`: the end
    ctypes.memmove(out, ctypes.byref(batch), ctypes.sizeof(_Array))
    return 0


@_GetError
def _get_error(stream: Any) -> None:
    return None


# The object's count is 0 by then: as an address, it is not brought back to life.
@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _free_capsule(capsule: int) -> None:
    address = _pointer_of(capsule, _CAPSULE)
    stream = _kept.pop(address)
    if stream.release:
        stream.release(ctypes.pointer(stream))


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.c_void_p, ctypes.c_char_p]

# Consumers may call these while the interpreter ends and this module is gone.
for _lasting in (_release_schema, _release_array, _release_stream, _get_schema, _get_next,
                 _get_error, _free_capsule, _CAPSULE, _kept):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_lasting))


# --- structures -----------------------------------------------------------------------------------


def _format_of(column: Column) -> str:
    if isinstance(column, array.array):
        return "l" if column.typecode == "q" else "g"
    kinds = {type(value) for value in column if value is not None}
    if not kinds:
        return "n"  # nothing but gaps
    if kinds == {bool}:
        return "b"
    if kinds == {int}:
        return "l"
    return "g" if kinds <= {int, float} else "u"


def _schema(form: str, name: str, children: Sequence[_Schema] = ()) -> _Schema:
    pointers = (ctypes.POINTER(_Schema) * max(1, len(children)))(*map(ctypes.pointer, children))
    texts = form.encode(), name.encode()
    number = _keep((texts, pointers, children))
    return _Schema(*texts, None, _NULLABLE if not children else 0, len(children), pointers, None,
                   _release_schema, number)


def _batch(table: Table) -> _Array:
    return _array(len(table), 0, [None], list(map(_column, table.columns.values())))


def _column(column: Column) -> _Array:
    if isinstance(column, array.array):
        return _array(len(column), 0, [None, memoryview(column)])
    gaps = sum(value is None for value in column)
    if gaps == len(column):
        return _array(len(column), gaps, [])
    valid = _bits(value is not None for value in column) if gaps else None
    return _array(len(column), gaps, [valid, *_data(column)])


def _data(column: Sequence[Any]) -> list[Any]:
    form = _format_of(column)
    if form == "b":
        return [_bits(map(bool, column))]
    if form in "lg":
        return [memoryview(array.array("q" if form == "l" else "d", [value or 0 for value in column]))]
    texts = ["" if value is None else str(value) for value in column]
    data = [text.encode() for text in texts]
    offsets = array.array("i", itertools.accumulate(map(len, data), initial=0))
    return [memoryview(offsets), memoryview(b"".join(data))]


# Lowest bit first.
def _bits(values: Any) -> memoryview:
    bits = "".join("1" if value else "0" for value in values)[::-1]
    return memoryview(int(bits or "0", 2).to_bytes(len(bits) // 8 + 1, "little"))


def _array(length: int, gaps: int, buffers: Sequence[memoryview | None],
           children: Sequence[_Array] = ()) -> _Array:
    pointers = (ctypes.c_void_p * len(buffers))(*map(_address, buffers))
    below = (ctypes.POINTER(_Array) * max(1, len(children)))(*map(ctypes.pointer, children))
    # A memoryview keeps its array from moving.
    number = _keep((buffers, pointers, below, children))
    return _Array(length, gaps, 0, len(buffers), len(children), pointers, below, None,
                  _release_array, number)


class _Buffer(ctypes.Structure):  # Py_buffer, up to what is read here
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("rest", ctypes.c_byte * 80)]


def _address(buffer: memoryview | None) -> int | None:
    if buffer is None:
        return None
    found = _Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(buffer), ctypes.byref(found), 0)
    address = found.buf
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(found))
    return address
