"""Machine instructions on words of text that Numba has no name for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from podium.kernels import Bytes


@intrinsic
def _eight_bytes(_context: Any, text: Any, _at: Any) -> Any:
    """The eight bytes from a place of a byte array as one unsigned number, unchecked (in kernels).

    Numba has no unaligned load of its own. The caller makes sure that the bytes exist.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        word = context.get_value_type(types.uint64)
        place = builder.gep(array.data, [arguments[1]])
        return builder.load(builder.bitcast(place, word.as_pointer()), align=1)

    return types.uint64(text, types.intp), generate


@intrinsic
def _trailing_zeros(_context: Any, _word: Any) -> Any:
    """How many low bits of an unsigned number, not 0, are 0 (in kernels)."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        never_zero = context.get_constant(types.boolean, True)
        return builder.cttz(arguments[0], builder.trunc(never_zero, never_zero.type))

    return types.int64(types.uint64), generate


# Intrinsics take a typing context first that callers do not see, which mypy cannot know.
eight_bytes = cast(Callable[[Bytes, int], np.uint64], _eight_bytes)
trailing_zeros = cast(Callable[[np.uint64], int], _trailing_zeros)
