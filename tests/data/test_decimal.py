"""Numbers in text become exactly the floats that Python makes of them."""

import io
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from podium.data import read_letor, read_qrels, read_run
from podium.errors import DataError

LARGEST = float(np.finfo(np.float32).max)

digits = st.text("0123456789", max_size=40)
signs = st.sampled_from(["", "-", "+"])
exponents = st.sampled_from(["", "e0", "E+0"]) | st.builds(
    "{}{}{}".format,
    st.sampled_from("eE"),
    signs,
    st.integers(0, 60).map(str) | st.integers(0, 420).map(str) | st.integers(0, 10**20).map(str),
)


@st.composite
def decimal_texts(draw: st.DrawFn) -> str:
    integer, fraction = draw(digits), draw(digits)
    point = "." if fraction or draw(st.booleans()) else ""
    if not integer and not fraction:
        integer = "0"
    return draw(signs) + integer + point + fraction + draw(exponents)


@st.composite
def texts_near_halfway(draw: st.DrawFn) -> str:
    """A decimal at, just above or just below the middle of two neighboring float32 numbers."""
    bits = draw(st.integers(0, int(np.float32(LARGEST).view(np.uint32)) - 1))
    low, high = np.array([bits, bits + 1], np.uint32).view(np.float32).tolist()
    middle = (Fraction(low) + Fraction(high)) / 2
    # Every double, so the middle too, is a finite decimal: 10**k times it is whole for some k.
    digits = (middle.denominator).bit_length() - 1
    integer = middle.numerator * 10**digits // middle.denominator
    kept = draw(st.integers(0, digits))
    integer //= 10 ** (digits - kept)
    text = str(integer + draw(st.integers(-1, 1)))
    return f"{text}e-{kept}"


def letor_value(text: str) -> np.float32:
    return read_letor(io.BytesIO(f"0 qid:1 1:{text}\n".encode())).features[0, 0]


def expect_float32(text: str) -> None:
    with np.errstate(over="ignore"):
        expected = np.float32(float(text))
    if np.isinf(expected):
        with pytest.raises(DataError, match="not a finite float32"):
            letor_value(text)
        with pytest.raises(DataError, match="finite"):
            read_letor(io.BytesIO(f"{text} qid:1\n".encode()))
    else:
        assert letor_value(text).tobytes() == expected.tobytes()
        label = read_letor(io.BytesIO(f"{text} qid:1\n".encode())).labels[0]
        assert label.tobytes() == expected.tobytes()


@settings(max_examples=500)
@given(decimal_texts())
@example("0.1")
@example("-0")
@example("+0e999999999999999999")
@example(".5")
@example("5.")
@example("1e0000000000000000001")
@example("000000000000000000000000000000000000000012.5")
@example("3.4028235677973366e38")  # the middle of the largest float32 and 2**128
@example("3.4028235677973365e38")
@example("7.006492321624085e-46")  # half of the least float32: to even, 0
@example("7.006492321624086e-46")
@example("9007199254740993")  # 2**53 + 1
@example("999999999999999999")  # 18 digits
@example("9999999999999999999")
@example("18446744073709551616")  # 2**64
@example("1e-270")
@example("1e-271")
@example("1e400")
@example("1" + "0" * 39)
@example("0." + "0" * 39 + "1")
def test_letor_numbers_equal_float32_of_float(text: str) -> None:
    expect_float32(text)


@settings(max_examples=500)
@given(texts_near_halfway())
def test_letor_numbers_next_to_a_rounding_border(text: str) -> None:
    expect_float32(text)


@settings(max_examples=300)
@given(decimal_texts())
def test_scores_of_runs_equal_float(text: str) -> None:
    line = io.BytesIO(f"q Q0 d 1 {text} tag\n".encode())
    expected = float(text)
    if np.isinf(expected):
        with pytest.raises(DataError, match="not a finite number for the score"):
            read_run(line)
    else:
        assert read_run(line).scores.tobytes() == np.float64(expected).tobytes()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_scores_written_by_python_come_back(value: float) -> None:
    score = read_run(io.BytesIO(f"q Q0 d 1 {value!r} tag\n".encode())).scores
    assert score.tobytes() == np.float64(value).tobytes()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "+",
        ".",
        "e5",
        "1e",
        "1e+",
        "1.2.3",
        "0x10",
        "1_000",
        "1,5",
        "--1",
        "1-",
        "1e5.5",
        "\u0661",
        "1\u00a0",
        "1d5",
        "1f",
        "nil",
        "1e 5",
        "in",
        "nanx",
        "infinit",
    ],
)
def test_what_is_no_decimal_number_is_refused(text: str) -> None:
    for line in (f"0 qid:1 1:{text}\n", f"{text} qid:1 1:1\n"):
        with pytest.raises(DataError) as caught:
            read_letor(io.BytesIO(line.encode()))
        assert caught.value.line == 1
    with pytest.raises(DataError) as caught:
        read_qrels(io.BytesIO(f"q 0 d {text}\n".encode()))
    assert caught.value.line == 1


def test_many_numbers_left_to_python_are_all_read() -> None:
    # So many numbers next to the middle of two float32 that the parser asks for more room, twice.
    text = "1.00000005960464511"
    expected = np.float32(float(text))
    assert expected == np.nextafter(np.float32(1), np.float32(2))
    rows, columns = 1500, 8
    line = "0 qid:1 " + " ".join(f"{column + 1}:{text}" for column in range(columns))
    data = read_letor(io.BytesIO("\n".join([line] * rows).encode()))
    assert data.features.shape == (rows, columns)
    assert np.all(data.features == expected)


def test_a_number_of_a_million_digits() -> None:
    assert letor_value("0." + "3" * 1_000_000) == np.float32(1 / 3)
    assert letor_value("1" + "0" * 20 + "." + "7" * 1_000_000 + "e-20") == np.float32(1)
    with pytest.raises(DataError, match="finite"):
        letor_value("9" * 1_000_000)
