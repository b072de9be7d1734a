"""Definitions of features in a TOML file, checked with the line and the key of each mistake."""

from __future__ import annotations

import hashlib
import math
import os
import re
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any, NoReturn, get_args

from podium.errors import DataError
from podium.features.definition import (
    SOURCES,
    EngineSource,
    FeatureDefinition,
    FieldSource,
    FunctionSource,
    QuerySource,
    RankerSource,
    Source,
    ValueType,
)
from podium.features.definitions import FeatureDefinitions
from podium.features.functions import FUNCTIONS, PROPERTIES
from podium.features.templates import QUERY, check_solr, check_template

MOST_FEATURES = 1_000
_MOST_BYTES = 1 << 20
_MOST_RANKER_BYTES = 1 << 30
_MOST_CATEGORIES = 10_000
_LARGEST = 3e38
"""About the largest number in single precision."""
_DEEPEST = 3
"""How many rankers' features may be nested in each other."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,199}")
_RESERVED = {"query_id", "document_id", "label"}
_CANDIDATES = re.compile(r"\s*\[\s*candidates\s*\]")
_HEADER = re.compile(r"\s*\[\[\s*feature\s*\]\]")

_KEYS: dict[str, tuple[str, ...]] = {
    "engine": ("template", "solr"),
    "field": ("field",),
    "query": ("property", "column"),
    "function": ("function", "field"),
    "ranker": ("ranker", "definitions"),
}
_TYPES: dict[str, tuple[ValueType, ...]] = {
    "engine": ("float",),
    "field": ("float", "int", "bool", "category"),
    "query": ("float", "int", "bool", "category"),
    "function": ("float", "int", "bool"),
    "ranker": ("float",),
}


def read_definitions(path: str | os.PathLike[str], depth: int = 1) -> FeatureDefinitions:
    """Read a file; a DataError names the line and the key of a mistake."""
    file = Path(path)
    content = _read(file, _MOST_BYTES)
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


def _read(file: Path, limit: int) -> bytes:
    try:
        if not file.is_file():
            raise DataError(
                "is not a file" if file.exists() else "no such file",
                path=file,
                hint="Check the path.",
            )
        if file.stat().st_size > limit:
            raise DataError(f"is larger than {limit >> 20} MiB", path=file, hint="Check the path.")
        return file.read_bytes()
    except OSError as error:
        raise DataError(
            f"cannot be read ({error.strerror})", path=file, hint="Check its permissions."
        ) from error


class _Reader:
    """Turns the tables of a file into definitions."""

    def __init__(self, file: Path, text: str, depth: int) -> None:
        self._file = file
        self._depth = depth
        self._lines = text.splitlines()
        self._headers = [
            number for number, line in enumerate(self._lines, 1) if _HEADER.match(line)
        ]
        self._where = ""
        self._header: int | None = None

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
        features: list[FeatureDefinition] = []
        for number, entry in enumerate(entries):
            name = entry.get("name")
            self._where = f"feature {name!r}" if isinstance(name, str) else f"feature {number + 1}"
            self._header = self._headers[number] if self._headers else None
            feature = self._feature(entry)
            if feature.name in {other.name for other in features}:
                self._fail("is defined twice", "Give it another name.", "name")
            features.append(feature)
        self._where, self._header = "", None
        candidates = self._candidates(tables.get("candidates"))
        definitions = FeatureDefinitions(tuple(features), candidates)
        logged = [feature.name for feature in definitions.logged]
        twice = [name for name in logged if logged.count(name) > 1]
        if twice:
            self._fail(
                f"has a feature named as one of a ranker's own is in engines: {twice[0]!r}",
                "Rename it.",
            )
        return definitions

    def _candidates(self, table: Any) -> EngineSource | None:
        if table is None:
            return None
        self._where = "candidates"
        self._header = next(
            (n for n, line in enumerate(self._lines, 1) if _CANDIDATES.match(line)), None
        )
        if not isinstance(table, dict):
            self._fail("is not a table", "Write [candidates] on a line of its own.")
        self._only_keys(table, _KEYS["engine"])
        return self._engine(table)

    def _feature(self, entry: dict[str, Any]) -> FeatureDefinition:
        name = self._text(entry, "name", _NAME, "letters, digits and underscores, no digit first")
        if name in _RESERVED:
            self._fail(f"{name!r} is a column of every data set", "Choose another name.", "name")
        kind = self._choice(entry, "source", tuple(SOURCES))
        value_type: ValueType = self._choice(entry, "type", get_args(ValueType), "float")
        if value_type not in _TYPES[kind]:
            self._fail(
                f"the source {kind} has no values of type {value_type}",
                f"Choose one of {', '.join(_TYPES[kind])}.",
                "type",
            )
        self._only_keys(entry, ("name", "source", "type", "missing", "categories", *_KEYS[kind]))
        readers: dict[str, Callable[[dict[str, Any]], Source]] = {
            "engine": self._engine,
            "field": lambda table: FieldSource(self._field(table)),
            "query": self._query,
            "function": self._function,
            "ranker": self._ranker,
        }
        source = readers[kind](entry)
        categories = self._categories(entry, value_type)
        if isinstance(source, QuerySource) and source.property and value_type == "category":
            self._fail("a property of the query is a number", "Give a column.", "type")
        return FeatureDefinition(
            name, source, value_type, self._missing(entry, value_type), categories
        )

    def _engine(self, table: dict[str, Any]) -> EngineSource:
        template, solr = table.get("template"), table.get("solr")
        if template is None and solr is None:
            self._fail(
                "has no query",
                "Give template (OpenSearch, Elasticsearch), solr, or both.",
            )
        if template is not None and (not isinstance(template, dict) or not template):
            self._fail("is not a table", "Write { match = { title = '{{query}}' } }.", "template")
        if solr is not None and (not isinstance(solr, str) or not solr):
            self._fail("is not a string", "Write '{!field f=title}{{query}}'.", "solr")
        with self._key("template"):
            if template is not None:
                check_template(template)
        with self._key("solr"):
            if solr is not None:
                check_solr(solr)
        return EngineSource(template, solr)

    def _field(self, table: dict[str, Any]) -> str:
        return self._text(table, "field", _FIELD, "the name of a field")

    def _query(self, table: dict[str, Any]) -> QuerySource:
        if ("property" in table) == ("column" in table):
            self._fail("needs either property or column", "Give one of them.")
        if "property" in table:
            return QuerySource(property=self._choice(table, "property", tuple(PROPERTIES)))
        column = self._text(table, "column", _NAME, "the name of a column of the queries")
        if column == QUERY:
            self._fail("'query' is the text of the query", "Give a property of it.", "column")
        return QuerySource(column=column)

    def _function(self, table: dict[str, Any]) -> FunctionSource:
        function = self._choice(table, "function", tuple(FUNCTIONS))
        return FunctionSource(function, self._field(table))

    def _ranker(self, table: dict[str, Any]) -> RankerSource:
        if self._depth >= _DEEPEST:
            self._fail(f"is nested deeper than {_DEEPEST} files", "Use fewer rankers.", "ranker")
        ranker, definitions = (self._beside(table, key) for key in ("ranker", "definitions"))
        if definitions.resolve() == self._file.resolve():
            self._fail("is this file", "Name the file of the ranker's own features.", "definitions")
        digest = hashlib.sha256(_read(ranker, _MOST_RANKER_BYTES)).hexdigest()
        return RankerSource(ranker, digest, read_definitions(definitions, self._depth + 1))

    def _beside(self, table: dict[str, Any], key: str) -> Path:
        """Return a file below the folder of the definitions: they are copied together."""
        text = table.get(key)
        if not isinstance(text, str) or not text:
            self._fail("is not the name of a file", "Give a path relative to this file.", key)
        path = Path(text)
        if path.is_absolute() or ".." in path.parts:
            self._fail(
                f"{text!r} is outside the folder of this file", "Put the file beside this one.", key
            )
        return self._file.parent / path

    def _categories(self, entry: dict[str, Any], value_type: ValueType) -> tuple[str, ...]:
        values = entry.get("categories")
        if value_type != "category":
            if values is not None:
                self._fail("belongs to type = 'category'", "Leave it out.", "categories")
            return ()
        if (
            not isinstance(values, list)
            or not 1 <= len(values) <= _MOST_CATEGORIES
            or not all(isinstance(value, str) for value in values)
            or len(set(values)) != len(values)
        ):
            self._fail(
                "is not a list of distinct strings",
                "List the known values, in order.",
                "categories",
            )
        return tuple(values)

    def _missing(self, entry: dict[str, Any], value_type: ValueType) -> float:
        value = entry.get("missing", math.nan)
        if isinstance(value, bool) and value_type == "bool":
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float) or value in (inf, -inf):
            self._fail("is not a finite number or nan", "Give a number.", "missing")
        if abs(value) > _LARGEST:
            self._fail("is too large for single precision", "Give a smaller number.", "missing")
        number = float(value)
        if value_type == "bool" and not math.isnan(number) and number not in (0.0, 1.0):
            self._fail("is neither true nor false", "Give true, false or nan.", "missing")
        if value_type in ("int", "category") and not math.isnan(number) and number % 1:
            self._fail("is not an integer", "Give an integer, or nan.", "missing")
        return number + 0.0  # -0.0 is 0.0

    def _text(self, table: dict[str, Any], key: str, pattern: re.Pattern[str], what: str) -> str:
        value = table.get(key)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            shown = "is missing" if value is None else f"{str(value)[:60]!r} is not valid"
            self._fail(shown, f"Give {what}.", key)
        return value

    def _choice(
        self, table: dict[str, Any], key: str, choices: tuple[Any, ...], default: Any = None
    ) -> Any:
        value = table.get(key, default)
        if value not in choices:
            shown = "is missing" if value is None else f"{str(value)[:60]!r} is unknown"
            self._fail(shown, f"Give one of {', '.join(choices)}.", key)
        return value

    def _only_keys(self, table: dict[str, Any], keys: tuple[str, ...]) -> None:
        unknown = sorted(set(table) - set(keys))
        if unknown:
            self._fail("is unknown here", f"Known: {', '.join(keys)}.", unknown[0])

    @contextmanager
    def _key(self, key: str) -> Iterator[None]:
        """Say where a problem with the value of a key is."""
        try:
            yield
        except DataError as error:
            self._fail(error.problem, error.hint, key)

    def _fail(self, problem: str, hint: str, key: str = "") -> NoReturn:
        location = f"{self._where}, {key}" if self._where and key else self._where or key
        text = f"{location}: {problem}" if location else problem
        raise DataError(text, path=self._file, line=self._line(key), hint=hint)

    def _line(self, key: str) -> int | None:
        """Return the line of a key of the current table, or of its header."""
        if self._header is None:
            return None
        pattern = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[.=]")
        for number in range(self._header + 1, len(self._lines) + 1):
            line = self._lines[number - 1]
            if line.lstrip().startswith("["):
                break
            if key and pattern.match(line):
                return number
        return self._header
