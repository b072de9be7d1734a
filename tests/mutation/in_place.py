"""A mutant in a process that has loaded the module: new code for functions that live there."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import CodeType, FunctionType

_OPTIMIZED = 1  # inspect.CO_OPTIMIZED: the code of a function, not of a module or a class


def functions_of(path: str) -> dict[tuple[str, int], list[FunctionType]]:
    """The functions of a source file that live in this process, by qualified name and line."""
    found: dict[tuple[str, int], list[FunctionType]] = {}
    for each in gc.get_objects():
        if type(each) is FunctionType and each.__code__.co_filename == path:
            code = each.__code__
            found.setdefault((code.co_qualname, code.co_firstlineno), []).append(each)
    return found


def changed_functions(
    path: str, before: str, after: str, living: dict[tuple[str, int], list[FunctionType]]
) -> list[tuple[FunctionType, CodeType]] | None:
    """The functions that a change of a file gives other code, with that code.

    None if the module must be loaded again: it changes outside of functions (a constant, a
    default), or no function that lives has the code, as where a decorator made another of it.
    """
    pairs = _differing(compile(before, path, "exec"), compile(after, path, "exec"))
    changed = []
    for old, new in pairs or []:
        functions = living.get((old.co_qualname, old.co_firstlineno))
        if not functions or old.co_freevars != new.co_freevars:
            return None
        changed += [(function, new) for function in functions]
    return changed or None


def _differing(old: CodeType, new: CodeType) -> list[tuple[CodeType, CodeType]] | None:
    """The functions in the code of a module or a class that differ; None if anything else does."""
    if _apart_from_constants(old) != _apart_from_constants(new):
        return None
    found = []
    for one, other in zip(old.co_consts, new.co_consts, strict=True):
        if not isinstance(one, CodeType) or not isinstance(other, CodeType):
            if not _same(one, other):
                return None
        elif one.co_flags & _OPTIMIZED:
            if not _same(one, other):
                found.append((one, other))
        else:
            inner = _differing(one, other)
            if inner is None:
                return None
            found += inner
    return found


def _same(one: object, other: object) -> bool:
    """Whether constants or functions are the same, wherever they stand in the file."""
    if not isinstance(one, CodeType) or not isinstance(other, CodeType):
        return type(one) is type(other) and repr(one) == repr(other)
    return _apart_from_constants(one) == _apart_from_constants(other) and all(
        _same(left, right) for left, right in zip(one.co_consts, other.co_consts, strict=True)
    )


def _apart_from_constants(code: CodeType) -> list[object]:
    return list(_parts(code))


def _parts(code: CodeType) -> Iterator[object]:
    yield from (code.co_qualname, code.co_code, code.co_names, code.co_varnames, code.co_flags)
    yield from (code.co_freevars, code.co_cellvars, code.co_exceptiontable, len(code.co_consts))
    yield from (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
