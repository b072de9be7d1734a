"""Sheets for people to judge a blind sample in: CSV files that any spreadsheet opens.

A sheet shows the query and the documents, in an order and on sides that are drawn, and not what the
model said. What people write is read back by the same columns.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from podium.data.csv_cells import harmless_cell, restored_cell
from podium.data.files import read_bounded, writing
from podium.data.seeds import generator, hashed_uniform
from podium.errors import ArgumentError, DataError
from podium.judging.auditing.sample import Unit, model_judgments, one_rubric
from podium.judging.models.answer_log import ModelAnswer

_GRADE_COLUMNS = ("query_id", "query", "document", "text", "answer")
_PAIR_COLUMNS = ("query_id", "query", "a", "a_text", "b", "b_text", "answer")
"""A cell that begins so would be run by a spreadsheet."""
_LONGEST = 32_000
"""Characters of a document that are shown: spreadsheets have no longer cells."""
_LARGEST = 2**26
_ANSWERS = {"A": 1.0, "B": -1.0, "TIE": 0.0}


def draw_units(
    answers: Sequence[ModelAnswer],
    count: int,
    *,
    model: str | None = None,
    rubric: str | None = None,
    random_state: int = 0,
) -> list[Unit]:
    """Draw units that a model judged, at random.

    Args:
        answers: The model's answers.
        count: How many units to draw.
        model: The model, if the answers are by several.
        rubric: The rubric's name or hash, if there are several.
        random_state: Draws them.

    Example:
        >>> answers = [
        ...     ModelAnswer(str(n), "tiny", "grades/1", "h", "q", (f"d{n}",), "1") for n in range(9)
        ... ]
        >>> len(draw_units(answers, 4))
        4
    """
    units = sorted(
        unit
        for unit, judgment in model_judgments(one_rubric(answers, model, rubric)).items()
        if judgment.value is not None
    )
    if not 1 <= count <= len(units):
        raise ArgumentError(
            f"a sample of {count} of {len(units)} units",
            hint=f"Draw 1 to {len(units)}, or let the model judge more.",
        )
    chosen = generator(random_state).permutation(len(units))[:count]
    return [units[int(number)] for number in chosen]


def write_sheet(
    units: Sequence[Unit],
    texts: Mapping[str, Mapping[str, str]],
    queries: Mapping[str, str],
    path: str | os.PathLike[str],
    *,
    random_state: int = 0,
) -> None:
    """Write a sheet to judge units in.

    Args:
        units: What is to be judged.
        texts: To each query id the text of each document.
        queries: To each query id its text.
        path: The CSV file.
        random_state: Draws the sides of pairs.

    Example:
        >>> import tempfile
        >>> name = tempfile.mkdtemp() + "/ann.csv"
        >>> write_sheet([("q1", "d1")], {"q1": {"d1": "Red shoes"}}, {"q1": "shoes"}, name)
        >>> print(Path(name).read_text(encoding="utf-8-sig"), end="")
        query_id,query,document,text,answer
        q1,shoes,d1,Red shoes,
    """
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow(_GRADE_COLUMNS if len(units[0]) == 2 else _PAIR_COLUMNS)
    for query, *items in units:
        if len(items) == 2 and hashed_uniform(random_state, "side", query, *items) < 0.5:
            items.reverse()
        cells = [query, queries.get(query, "")]
        for item in items:
            text = texts.get(query, {}).get(item)
            if text is None:
                raise DataError(
                    f"document {item!r} of query {query!r} has no text",
                    hint="Give the candidates that the model judged.",
                )
            cells += [item, text if len(text) <= _LONGEST else text[:_LONGEST] + " …"]
        writer.writerow([*map(harmless_cell, cells), ""])
    # Spreadsheets take UTF-8 for what it is only with a byte order mark.
    with writing(path):
        Path(path).write_text(output.getvalue(), encoding="utf-8-sig")


def read_sheet(
    path: str | os.PathLike[str], grades: Sequence[str] = ("0", "1", "2", "3", "4")
) -> dict[Unit, float]:
    r"""Read what a person answered in a sheet; rows without an answer are left out.

    Args:
        path: The sheet.
        grades: The grades of the rubric; any other is an error.

    Example:
        >>> import tempfile
        >>> name = tempfile.mkdtemp() + "/ann.csv"
        >>> _ = Path(name).write_text("query_id,document,answer\nq1,d1,2\nq1,d2,\n")
        >>> read_sheet(name)
        {('q1', 'd1'): 2.0}
    """
    content = read_bounded(path, _LARGEST, hint="Name a sheet.")
    try:
        text = content.decode("utf-8-sig")
        header = text.partition("\n")[0]
        # Spreadsheets write semicolons or tabs where a comma is a decimal point.
        delimiter = max(",;\t", key=header.count)
        rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
        columns = rows.fieldnames or ()
        votes: dict[Unit, float] = {}
        for row in rows:
            try:
                vote = _vote(row, columns, grades)
                if vote is not None:
                    unit, value = vote
                    if votes.setdefault(unit, value) != value:
                        raise DataError(
                            f"{' '.join(unit)} has two answers", hint="Keep one of them."
                        )
            except DataError as error:
                raise error.at(path, rows.line_num) from error
    except UnicodeError as error:
        raise DataError("is not UTF-8 text", path=path, hint="Save it as UTF-8.") from error
    except csv.Error as error:
        raise DataError(f"is not CSV ({error})", path=path, hint="Save it as CSV.") from error
    return votes


def _vote(
    row: Mapping[str, str | None], columns: Sequence[str], grades: Sequence[str]
) -> tuple[Unit, float] | None:
    kinds = {"document"} if "document" in columns else {"a", "b"}
    missing = {"query_id", "answer", *kinds} - set(columns)
    if missing:
        raise DataError(
            f"has no column {min(missing)!r}",
            hint="Give query_id, answer, and document, or a and b, separated by commas.",
        )
    answer = (row["answer"] or "").strip().upper()
    if not answer:
        return None
    query = restored_cell(row["query_id"] or "")
    if kinds == {"document"}:
        if answer not in grades:
            raise DataError(
                f"{answer[:50]!r} is not a valid grade", hint=f"Write {', '.join(grades)}."
            )
        return (query, restored_cell(row["document"] or "")), float(answer)
    if answer not in _ANSWERS:
        raise DataError(f"{answer[:50]!r} is not a valid answer", hint="Write A, B or TIE.")
    first, second = restored_cell(row["a"] or ""), restored_cell(row["b"] or "")
    value = _ANSWERS[answer]
    return (query, *sorted((first, second))), value if first < second else 0.0 - value
