"""Conversion between formats, streamed where both support it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from podium.data.candidates import CandidateList, candidate_judgments, candidate_rankings
from podium.data.dataset import Dataset
from podium.data.files import Reporter, Source
from podium.data.format_registry import FORMATS, Format, format_of
from podium.data.formats.letor import group_file
from podium.data.judged import Judgments, Rankings
from podium.data.preferences import PreferenceLevels, Preferences
from podium.data.query_rows import join_rows
from podium.errors import ArgumentError, DataError


def dataset_judgments(data: Dataset) -> Judgments:
    """Return the labels of a data set as judgments.

    Example:
        >>> data = Dataset.from_arrays([[1.0]], labels=[2], qid=["q"], document_ids=["d"])
        >>> dataset_judgments(data).labels.tolist()
        [2.0]
    """
    if data.document_ids is None:
        raise DataError("the data set has no document ids", hint="Judgments need them.")
    return Judgments.from_columns(data.query_id_of_row(), data.document_ids, data.labels)


_BRIDGES: dict[tuple[type, type], Callable[[Any], Any]] = {
    (Dataset, Judgments): dataset_judgments,
    (CandidateList, Judgments): candidate_judgments,
    (CandidateList, Rankings): candidate_rankings,
    (PreferenceLevels, Preferences): PreferenceLevels.pairs,
}


def convert(
    source: Source,
    target: Source,
    *,
    source_format: str | None = None,
    target_format: str | None = None,
    change: Callable[[Dataset], Dataset] | None = None,
    whole: bool = False,
    progress: Reporter | None = None,
    **options: Any,
) -> None:
    r"""Convert a file or folder to another format.

    Formats are inferred from file suffixes where they are not given. Data sets are converted in
    blocks of whole queries, so their size does not matter.

    Args:
        source: The file or folder to read.
        target: The file or folder to write.
        source_format: The name of its format (``podium.data.formats.FORMATS``).
        target_format: The name of the format to write.
        change: Function applied to each block of a data set, e.g. ``lambda data: data.top_k(10)``.
        whole: Read all of a data set into memory first: needed where the rows of a query are not
            contiguous.
        progress: Called with bytes read and total bytes.
        options: Passed on to the reader.

    Raises:
        ArgumentError: The format is unknown, or the source cannot be converted to it.
        DataError: The source is malformed.

    Example:
        >>> import io
        >>> text, out = io.BytesIO(b"2 qid:1 1:0.5 #docid = a"), io.BytesIO()
        >>> convert(text, out, source_format="letor", target_format="qrels")
        >>> out.getvalue().decode()
        '1 0 a 2\n'
    """
    source_type = format_of(source, source_format)
    target_type = format_written(target, target_format, source_type)
    if change is not None and source_type.kind is not Dataset:
        raise ArgumentError(
            f"{source_type.name} is not a data set format", hint="Leave out change=."
        )
    bridge = _BRIDGES.get((source_type.kind, target_type.kind))
    if source_type.kind is not target_type.kind and bridge is None:
        reachable = [
            name
            for name, entry in FORMATS.items()
            if entry.kind is source_type.kind or (source_type.kind, entry.kind) in _BRIDGES
        ]
        raise ArgumentError(
            f"{source_type.name} cannot be converted to {target_type.name}",
            hint=f"Convert it to one of: {', '.join(reachable)}.",
        )
    content: Any
    if source_type.kind is Dataset:
        content = dataset_blocks(source_type, source, whole=whole, progress=progress, **options)
        if change is not None:
            content = map(change, content)
        if bridge is not None:
            content = _concat_judgments(map(bridge, content))
    else:
        content = read_all(source_type, source, progress=progress, **options)
        if bridge is not None:
            content = bridge(content)
    target_type.write(content, target)


def format_written(target: Source, name: str | None, source: Format) -> Format:
    """Return the format to write: of what is not a data set, .parquet is its own kind of Parquet.

    Example:
        >>> format_written("judged.parquet", None, FORMATS["workbench"]).name
        'qrels-parquet'
    """
    entry = format_of(target, name)
    if name is None and entry.name == "parquet":
        for other in FORMATS.values():
            if other.kind is source.kind and other.name.endswith("-parquet"):
                return other
    return entry


def dataset_blocks(
    file_format: Format,
    source: Source,
    *,
    whole: bool = False,
    progress: Reporter | None = None,
    **options: Any,
) -> Iterable[Dataset]:
    """Stream a data set of any format; one block if ``whole`` or if rows are grouped by sizes."""
    grouped = file_format.name == "letor" and (
        options.get("group") is not None or group_file(source) is not None
    )
    # Readers of blocks have no option for labels that are missing.
    if file_format.stream is None or whole or grouped or options.get("unlabeled"):
        return [read_all(file_format, source, progress=progress, **options)]
    return file_format.stream(source, **_reader_options(file_format, options, progress))


def read_all(
    file_format: Format, source: Source, *, progress: Reporter | None = None, **options: Any
) -> Any:
    """Read a source of any format; options are those of its reader."""
    return file_format.read(source, **_reader_options(file_format, options, progress))


def _reader_options(
    file_format: Format, options: dict[str, Any], progress: Reporter | None
) -> dict[str, Any]:
    for name in options.keys() - set(file_format.options):
        raise ArgumentError(f"{file_format.name} has no option {name!r}", hint="Leave it out.")
    if progress is not None and "progress" in file_format.options:
        return {**options, "progress": progress}
    return options


def _concat_judgments(parts: Iterable[Judgments]) -> Judgments:
    tables = list(parts)
    if not tables:
        raise DataError("there is no data to write", hint="Give at least one query.")
    return Judgments(**join_rows(tables))
