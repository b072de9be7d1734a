"""From one format to another, streamed where both allow it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from podium.data.candidates import CandidateList, candidate_judgments, candidate_rankings
from podium.data.dataset import Dataset
from podium.data.files import Reporter, Source
from podium.data.formats import FORMATS, Format, format_of
from podium.data.formats.letor import group_file
from podium.data.judged import Judgments, Rankings
from podium.data.preferences import PreferenceLevels, Preferences
from podium.data.query_rows import join_rows
from podium.errors import ArgumentError, DataError


def dataset_judgments(data: Dataset) -> Judgments:
    """The labels of a data set by document id.

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

    Formats are taken from the names' endings where they are not given. Data sets go through in
    blocks of whole queries, so their size does not matter.

    Args:
        source: What to read.
        target: What to write.
        source_format: The name of its format (``podium.data.formats.FORMATS``).
        target_format: The name of the format to write.
        change: What to do with each block of a data set, say ``lambda data: data.top_k(10)``.
        whole: Read a data set whole first: needed where the rows of a query lie apart.
        progress: Called with bytes read and bytes in all.
        options: Passed on to the reader.

    Raises:
        DataError: There is no such format, the source is wrong, or the two do not go together.

    Example:
        >>> import io
        >>> text, out = io.BytesIO(b"2 qid:1 1:0.5 #docid = a"), io.BytesIO()
        >>> convert(text, out, source_format="letor", target_format="qrels")
        >>> out.getvalue().decode()
        '1 0 a 2\n'
    """
    given = format_of(source, source_format)
    wanted = format_of(target, target_format)
    if change is not None and given.kind is not Dataset:
        raise ArgumentError(
            f"{given.name} holds no data set to change", hint="Leave the change out."
        )
    bridge = _BRIDGES.get((given.kind, wanted.kind))
    if given.kind is not wanted.kind and bridge is None:
        reachable = [
            name
            for name, entry in FORMATS.items()
            if entry.kind is given.kind or (given.kind, entry.kind) in _BRIDGES
        ]
        raise ArgumentError(
            f"{given.name} cannot become {wanted.name}", hint=f"It can: {', '.join(reachable)}."
        )
    content: Any
    if given.kind is Dataset:
        content = blocks_of(given, source, whole=whole, progress=progress, **options)
        if change is not None:
            content = map(change, content)
        if bridge is not None:
            content = _joined(map(bridge, content))
    else:
        content = read_all(given, source, progress=progress, **options)
        if bridge is not None:
            content = bridge(content)
    wanted.write(content, target)


def blocks_of(
    given: Format,
    source: Source,
    *,
    whole: bool = False,
    progress: Reporter | None = None,
    **options: Any,
) -> Iterable[Dataset]:
    """Stream a data set of any format, or give it whole where asked to, or with group sizes."""
    grouped = given.name == "letor" and (options.get("group") or group_file(source)) is not None
    if given.stream is None or whole or grouped:
        return [read_all(given, source, progress=progress, **options)]
    return given.stream(source, **_known(given, options, progress))


def read_all(
    given: Format, source: Source, *, progress: Reporter | None = None, **options: Any
) -> Any:
    """Read a source of any format; options are those of its reader."""
    return given.read(source, **_known(given, options, progress))


def _known(given: Format, options: dict[str, Any], progress: Reporter | None) -> dict[str, Any]:
    for name in options.keys() - set(given.options):
        raise ArgumentError(f"{given.name} knows no option {name!r}", hint="Leave it out.")
    if progress is not None and "progress" in given.options:
        return {**options, "progress": progress}
    return options


def _joined(parts: Iterable[Judgments]) -> Judgments:
    tables = list(parts)
    if not tables:
        raise DataError("there is no data to write", hint="Give at least one query.")
    return Judgments(**join_rows(tables))
