"""Exact parsing of decimal numbers from bytes inside compiled kernels.

A number is either parsed exactly here, or bounded so tightly that rounding it to float32 cannot go
wrong, or left to Python's ``float`` by its position (the rarest case). No result ever differs from
``numpy.float32(float(text))``.
"""

from __future__ import annotations

import numpy as np

from podium.kernels import Bytes, inner
from podium.kernels.intrinsics import eight_bytes, trailing_zeros

BAD, EXACT, NEAR, SLOW = 0, 1, 2, 3
"""Status of ``read_decimal``: not a number; exact; within a relative 2**-50; out of range."""

_POWERS = np.array([float(f"1e{power}") for power in range(309)])
_EXACT_INTEGERS = 1 << 53
_SMALL_POWERS = np.array([10**power for power in range(19)], np.uint64)
_SIGNED_POWERS = _SMALL_POWERS.astype(np.int64)
_ZEROS = np.uint64(0x3030303030303030)
_HIGH_BITS = np.uint64(0x8080808080808080)
_TO_HIGH_BIT = np.uint64(0x7676767676767676)
_EVERY_FOURTH = np.uint64(0x000000FF000000FF)
_LOW, _HIGH = 1.0 - 2.0**-50, 1.0 + 2.0**-50


@inner
def read_digits(text: Bytes, at: int) -> tuple[int, int]:
    """Parse a run of digits (modulo 2**64), eight at a time; return its value and end.

    At least eight bytes must follow the last digit; ``podium.data.files`` adds padding.
    """
    total = np.uint64(0)
    while True:
        # Digits become 0..9; of other bytes the first one has its high bit set in `beyond`.
        digits = eight_bytes(text, at) ^ _ZEROS
        beyond = ((digits + _TO_HIGH_BIT) | digits) & _HIGH_BITS
        if beyond == 0:
            total = total * np.uint64(100_000_000) + _value_of_eight(digits)
            at += 8
            continue
        count = trailing_zeros(beyond) >> 3
        if count:
            # Shifted so that zeros lead, fewer than eight digits are eight digits too.
            leading = digits << np.uint64(64 - 8 * count)
            total = total * _SMALL_POWERS[count] + _value_of_eight(leading)
        return np.int64(total), at + count  # type: ignore[return-value]


@inner
def _value_of_eight(digits: np.uint64) -> np.uint64:
    """The number formed by eight bytes 0..9, the lowest byte being the first digit."""
    pairs = digits * np.uint64(10) + (digits >> np.uint64(8))
    return (
        (pairs & _EVERY_FOURTH) * np.uint64(0x000F424000000064)
        + ((pairs >> np.uint64(16)) & _EVERY_FOURTH) * np.uint64(0x0000271000000001)
    ) >> np.uint64(32)


@inner
def read_decimal(text: Bytes, at: int) -> tuple[int, float, int]:
    """Read ``[+-]digits[.digits][e[+-]digits]`` from padded text.

    Returns the status (BAD, EXACT, NEAR or SLOW), the value, and where it ends.
    """
    negative = text[at] == 45
    if negative or text[at] == 43:
        at += 1
    begin = at
    scale = 0
    mantissa, at = read_digits(text, begin)
    digits = at - begin
    if text[at] == 46:
        point = at + 1
        fraction, at = read_digits(text, point)
        scale = point - at
        digits -= scale
        if digits <= 18:
            mantissa = mantissa * _SIGNED_POWERS[-scale] + fraction
    if digits == 0:
        return BAD, 0.0, at
    status = EXACT
    if digits > 18:
        mantissa, scale, dropped = _long_mantissa(text, begin, at)
        if dropped:
            status = NEAR
    if text[at] == 101 or text[at] == 69:
        minus = text[at + 1] == 45
        begin = at + 2 if minus or text[at + 1] == 43 else at + 1
        exponent, at = read_digits(text, begin)
        if at == begin:
            return BAD, 0.0, at
        if at - begin > 15:
            exponent = 1 << 40
        scale += -exponent if minus else exponent
    value = float(mantissa)
    if mantissa != 0:
        if mantissa > _EXACT_INTEGERS or scale < -22 or scale > 22:
            status = NEAR
            if scale < -270 or scale > 270:
                return SLOW, value, at
        value = value / _POWERS[-scale] if scale <= 0 else value * _POWERS[scale]
    return status, (-value if negative else value), at


@inner
def _long_mantissa(text: Bytes, at: int, stop: int) -> tuple[int, int, bool]:
    """The first 18 significant digits, their power of ten, and whether digits were dropped."""
    mantissa = scale = digits = 0
    dropped = after_point = False
    for index in range(at, stop):
        if text[index] == 46:
            after_point = True
            continue
        digit = int(text[index]) - 48
        if digits < 18:
            mantissa = mantissa * 10 + digit
            digits += mantissa > 0
            scale -= after_point
        else:
            dropped = dropped or digit > 0
            scale += not after_point
    return mantissa, scale, dropped


@inner
def sure_float32(status: int, value: float) -> bool:
    """Whether rounding a result of ``read_decimal`` to float32 is exact."""
    return status == EXACT or (
        status == NEAR and np.float32(value * _LOW) == np.float32(value * _HIGH)
    )
