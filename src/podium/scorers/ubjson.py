"""Universal Binary JSON, as far as XGBoost writes it: typed arrays, nothing nested too deeply."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from podium.errors import DataError
from podium.scorers.feature_names import shortened

_NUMBERS = {
    b"i": (">b", 1), b"U": (">B", 1), b"I": (">h", 2), b"l": (">i", 4), b"L": (">q", 8),
    b"d": (">f", 4), b"D": (">d", 8),
}  # fmt: skip
_DTYPES = {
    b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8",
}  # fmt: skip
_CONSTANTS: dict[bytes, Any] = {b"Z": None, b"T": True, b"F": False}
_DEEPEST = 64


def parse_ubjson(content: bytes) -> Any:
    r"""Parse untrusted UBJSON; a DataError if it is not valid.

    Example:
        >>> parse_ubjson(b"{i\x01a[$U#i\x02\x07\x08}")
        {'a': [7, 8]}
    """
    try:
        value, end = _value(content, 1, content[:1], 0)
    except (struct.error, IndexError, KeyError, UnicodeDecodeError, ValueError) as error:
        raise DataError(
            f"is not UBJSON ({shortened(repr(error))})", hint="Save the model again."
        ) from error
    if end != len(content):
        raise DataError("is not UBJSON (it goes on after its end)", hint="Save the model again.")
    return value


def _value(content: bytes, at: int, kind: bytes, depth: int) -> tuple[Any, int]:
    """Return the value of a type at a position, and the position after it."""
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    if kind in _NUMBERS:
        form, size = _NUMBERS[kind]
        return struct.unpack_from(form, content, at)[0], at + size
    if kind in _CONSTANTS:
        return _CONSTANTS[kind], at
    if kind == b"S":
        return _text(content, at)
    if kind == b"[":
        return _array(content, at, depth)
    if kind == b"{":
        return _object(content, at, depth)
    raise ValueError(f"{kind!r} is not a type")


def _count(content: bytes, at: int) -> tuple[int, int]:
    kind = content[at : at + 1]
    if kind not in _NUMBERS or kind in (b"d", b"D"):
        raise ValueError("a length is not an integer")
    count, end = _value(content, at + 1, kind, 0)
    if not 0 <= count <= len(content):
        raise ValueError("a length is out of range")
    return int(count), end


def _text(content: bytes, at: int) -> tuple[str, int]:
    size, start = _count(content, at)
    if start + size > len(content):
        raise ValueError("a string is cut short")
    return content[start : start + size].decode(), start + size


def _array(content: bytes, at: int, depth: int) -> tuple[list[Any], int]:
    if content[at : at + 1] == b"$":
        kind = content[at + 1 : at + 2]
        if content[at + 2 : at + 3] != b"#":
            raise ValueError("a typed array has no length")
        count, start = _count(content, at + 3)
        dtype = np.dtype(_DTYPES[kind])
        if start + count * dtype.itemsize > len(content):
            raise ValueError("an array is cut short")
        return np.frombuffer(content, dtype, count, start).tolist(), start + count * dtype.itemsize
    items: list[Any] = []
    if content[at : at + 1] == b"#":
        count, at = _count(content, at + 1)
        for _ in range(count):
            item, at = _value(content, at + 1, content[at : at + 1], depth + 1)
            items.append(item)
        return items, at
    while content[at : at + 1] != b"]":
        item, at = _value(content, at + 1, content[at : at + 1], depth + 1)
        items.append(item)
    return items, at + 1


def _object(content: bytes, at: int, depth: int) -> tuple[dict[str, Any], int]:
    result: dict[str, Any] = {}
    while content[at : at + 1] != b"}":
        name, at = _text(content, at)
        if name in result:
            raise ValueError("duplicate key in an object")
        result[name], at = _value(content, at + 1, content[at : at + 1], depth + 1)
    return result, at + 1
