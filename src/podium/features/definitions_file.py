"""Definitions of features in a TOML file, checked with the line and the key of each mistake."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from math import inf, isnan, nan
from pathlib import Path
from typing import Any, NoReturn

from podium.data.files import read_bounded
from podium.errors import DataError
from podium.features.definition import VALUE_TYPES, FeatureDefinition, Source, ValueType
from podium.features.definitions import FeatureDefinitions
from podium.features.ranker_source import RankerSource
from podium.features.sources import NAME, EngineSource, FieldSource, FunctionSource, QuerySource
from podium.features.toml_table import TomlTable
from podium.registry import Registry

_SOURCES: tuple[type[Source], ...] = (
    EngineSource, FieldSource, QuerySource, FunctionSource, RankerSource
)  # fmt: skip
SOURCES: Registry[type[Source]] = Registry("source", {each.name: each for each in _SOURCES})
"""Where values come from, by the name in a file."""

MOST_FEATURES = 1_000
_MOST_BYTES = 1 << 20
_MOST_CATEGORIES = 10_000
_LARGEST = 3e38
"""About the largest number in single precision."""
_DEEPEST = 3
"""How many rankers' features may be nested in each other."""

_RESERVED = {"query_id", "document_id", "label"}
_CANDIDATES = re.compile(r"\s*\[\s*candidates\s*\]")
_HEADER = re.compile(r"\s*\[\[\s*feature\s*\]\]")
_KEYS = ("name", "source", "type", "missing", "categories")
"""The keys of every feature, whatever its source."""


def read_definitions(path: str | os.PathLike[str], *, depth: int = 1) -> FeatureDefinitions:
    r"""Read definitions of features from a TOML file.

    Args:
        path: The file.
        depth: How many files of definitions this is nested in, and itself.

    Raises:
        DataError: If it is malformed; the error names the line and the key.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "features.toml"
        >>> size = file.write_text("[[feature]]\nname = 'age'\nsource = 'field'\nfield = 'days'")
        >>> read_definitions(file).names
        ('age',)
    """
    file = Path(path)
    content = read_bounded(file, _MOST_BYTES)
    try:
        text = content.decode("utf-8-sig")
        tables = tomllib.loads(text)
    except UnicodeError as error:
        raise DataError("is not UTF-8 text", path=file, hint="Convert it first.") from error
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        problem = str(error).partition(" (at ")[0]
        column = f", column {line[2]}" if line else ""
        raise DataError(
            f"is not TOML ({problem}{column})",
            path=file,
            line=int(line[1]) if line else None,
            hint="Fix it.",
        ) from error
    except (RecursionError, ValueError) as error:  # a number may have too many digits
        raise DataError(
            f"is nested too deeply or has a number that is too long ({type(error).__name__})",
            path=file,
            hint="Make it simpler.",
        ) from error
    return _Reader(file, text, depth).definitions(tables)


class _Reader:
    """Turns the tables of a file into definitions."""

    def __init__(self, file: Path, text: str, depth: int) -> None:
        self._file = file
        self._depth = depth
        self._lines = text.splitlines()
        self._headers = [
            number for number, line in enumerate(self._lines, 1) if _HEADER.match(line)
        ]

    def definitions(self, tables: dict[str, Any]) -> FeatureDefinitions:
        unknown = sorted(set(tables) - {"feature", "candidates"})
        if unknown:
            self._fail(f"has an unknown table {unknown[0]!r}", "Write [[feature]] or [candidates].")
        entries = tables.get("feature", [])
        if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
            self._fail("has a feature that is not a table", "Begin each with [[feature]].")
        if not 1 <= len(entries) <= MOST_FEATURES:
            self._fail(f"has {len(entries)} features", f"Define 1 to {MOST_FEATURES} of them.")
        if len(self._headers) != len(entries):  # written in another way: no lines are known
            self._headers = []
        features: dict[str, FeatureDefinition] = {}
        for number, entry in enumerate(entries):
            name = entry.get("name")
            title = f"feature {name!r}" if isinstance(name, str) else f"feature {number + 1}"
            header = self._headers[number] if self._headers else None
            table = self._table(entry, title, header)
            feature = _feature(table)
            if feature.name in features:
                table.fail("is defined twice", "Give it another name.", "name")
            features[feature.name] = feature
        candidates = self._candidates(tables.get("candidates"))
        definitions = FeatureDefinitions(tuple(features.values()), candidates)
        logged = [feature.name for feature in definitions.logged]
        twice = [name for name in logged if logged.count(name) > 1]
        if twice:
            self._fail(
                f"has a feature named as one of a ranker's own is in engines: {twice[0]!r}",
                "Rename it.",
            )
        return definitions

    def _table(self, values: Mapping[str, Any], title: str, header: int | None) -> TomlTable:
        return TomlTable(values, title, self._file, self._lines, header, self._nested)

    def _fail(self, problem: str, hint: str) -> NoReturn:
        self._table({}, "", None).fail(problem, hint)

    def _candidates(self, values: Any) -> EngineSource | None:
        if values is None:
            return None
        header = next((n for n, line in enumerate(self._lines, 1) if _CANDIDATES.match(line)), None)
        if not isinstance(values, dict):
            self._table({}, "candidates", header).fail(
                "is not a table", "Write [candidates] on a line of its own."
            )
        table = self._table(values, "candidates", header)
        table.only_keys(EngineSource.keys)
        return EngineSource.read(table)

    def _nested(self, table: TomlTable) -> FeatureDefinitions:
        if self._depth >= _DEEPEST:
            table.fail(f"is nested deeper than {_DEEPEST} files", "Use fewer rankers.", "ranker")
        file = table.file_beside("definitions")
        if file.resolve() == self._file.resolve():
            hint = "Name the file of the ranker's own features."
            table.fail("is this file", hint, "definitions")
        return read_definitions(file, depth=self._depth + 1)


def _feature(table: TomlTable) -> FeatureDefinition:
    name = table.text("name", NAME, "letters, digits and underscores, no digit first")
    if name in _RESERVED:
        table.fail(f"{name!r} is a column of every data set", "Choose another name.", "name")
    source = SOURCES[table.choice("source", tuple(SOURCES))]
    value_type: ValueType = table.choice("type", VALUE_TYPES, "float")
    if value_type not in source.types:
        table.fail(
            f"the source {source.name} has no values of type {value_type}",
            f"Choose one of {', '.join(source.types)}.",
            "type",
        )
    table.only_keys((*_KEYS, *source.keys))
    values = source.read(table, value_type)
    categories = _categories(table, value_type)
    return FeatureDefinition(name, values, value_type, _missing(table, value_type), categories)


def _categories(table: TomlTable, value_type: ValueType) -> tuple[str, ...]:
    values = table.values.get("categories")
    if value_type != "category":
        if values is not None:
            table.fail("belongs to type = 'category'", "Leave it out.", "categories")
        return ()
    if (
        not isinstance(values, list)
        or not 1 <= len(values) <= _MOST_CATEGORIES
        or not all(isinstance(value, str) for value in values)
        or len(set(values)) != len(values)
    ):
        table.fail(
            "is not a list of distinct strings",
            "List the known values, in order.",
            "categories",
        )
    return tuple(values)


def _missing(table: TomlTable, value_type: ValueType) -> float:
    value = table.values.get("missing", nan)
    if isinstance(value, bool) and value_type == "bool":
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value in (inf, -inf):
        table.fail("is not a finite number or nan", "Give a number.", "missing")
    if abs(value) > _LARGEST:
        table.fail("is too large for single precision", "Give a smaller number.", "missing")
    number = float(value)
    if value_type == "bool" and not isnan(number) and number not in (0.0, 1.0):
        table.fail("is neither true nor false", "Give true, false or nan.", "missing")
    if value_type in ("int", "category") and not isnan(number) and number % 1:
        table.fail("is not an integer", "Give an integer, or nan.", "missing")
    return number + 0.0  # -0.0 is 0.0
