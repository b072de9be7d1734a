"""A file format of one's own: columns `query_id` and `label`, then features, between semicolons.

Reading gives a `Dataset`, and what is wrong with a file is a `DataError` that names the line.
"""

import csv
import io

import numpy as np

from podium.data import FORMATS, Dataset, Format
from podium.data.files import numbered_lines, open_write, source_name
from podium.errors import DataError


def read_semicolons(source, *, progress=None):
    """Read a file; rows of a query need not be contiguous."""
    rows = csv.reader(
        (line.decode() for _, line in numbered_lines(source, progress=progress)), delimiter=";"
    )
    names = next(rows, [])
    if names[:2] != ["query_id", "label"]:
        raise DataError("does not begin with query_id;label", path=source_name(source), line=1)
    queries, numbers = [], []
    for row in rows:
        try:
            queries.append(row[0])
            numbers.append([float(cell) for cell in row[1:]])
        except (IndexError, ValueError) as error:
            raise DataError(
                f"holds no number ({error})", path=source_name(source), line=rows.line_num
            ) from error
    table = np.array(numbers, np.float32).reshape(len(numbers), -1)
    return Dataset.from_arrays(table[:, 1:], table[:, 0], qid=queries, feature_names=names[2:])


def write_semicolons(datasets, target):
    """Write a data set, or blocks of one as they come."""
    with open_write(target) as write:
        for block, data in enumerate([datasets] if isinstance(datasets, Dataset) else datasets):
            text = io.StringIO()
            table = csv.writer(text, delimiter=";", lineterminator="\n")
            if not block:
                table.writerow(["query_id", "label", *data.feature_names])
            columns = (data.query_id_of_row().to_pylist(), data.labels.tolist(), data.features)
            for query, label, features in zip(*columns, strict=True):
                table.writerow([query, label, *features.tolist()])
            write(text.getvalue().encode())


FORMATS["ssv"] = Format("ssv", Dataset, read_semicolons, write_semicolons, suffixes=(".ssv",))
