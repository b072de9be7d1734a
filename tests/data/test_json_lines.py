"""JSON lines: one reader, which says where and what, and logs that a crash may have cut."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.data.json_lines import json_line, json_lines, parse_log
from podium.errors import DataError

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text("ab"), inside),
    max_leaves=8,
)
OBJECTS = st.lists(st.dictionaries(st.text("abc", max_size=3), VALUES, max_size=3), max_size=5)


def same(content: dict[str, object]) -> dict[str, object]:
    return content


@given(OBJECTS)
def test_what_is_written_is_read(objects: list[dict[str, object]]) -> None:
    content = b"".join(map(json_line, objects))
    assert list(json_lines(io.BytesIO(content), same)) == objects
    assert parse_log(content, same, "log") == (objects, len(content))


@given(OBJECTS.filter(len), st.data())
def test_a_log_that_was_cut_is_read_up_to_its_last_whole_line(
    objects: list[dict[str, object]], data: st.DataObject
) -> None:
    lines = [*map(json_line, objects)]
    cut = data.draw(st.integers(0, len(lines[-1]) - 1))
    content = b"".join(lines[:-1]) + lines[-1][:cut]
    assert parse_log(content, same, "log") == (objects[:-1], len(b"".join(lines[:-1])))


def refuse(content: dict[str, object]) -> None:
    raise DataError(f"has {len(content)} keys", hint="Fix it.")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"{}", "has 0 keys. Fix it."),
        (b"{", "is not JSON"),
        (b"[1]", "is not a JSON object"),
        (b"\xff{}", "is not UTF-8 text"),
        (b'{"a": 1, "a": 2}', "duplicate key in an object"),
        (b"[" * 100_000, "is not JSON (nested too deeply)"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(line: bytes, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        list(json_lines(io.BytesIO(b"\n" + line + b"\n"), refuse))
    assert str(caught.value).startswith(f"stream, line 2: {problem}")
    with pytest.raises(DataError) as caught:
        parse_log(line + b"\n", refuse, "a.jsonl")
    assert str(caught.value).startswith(f"a.jsonl, line 1: {problem}")
