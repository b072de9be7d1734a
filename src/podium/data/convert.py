"""From one format to another, streamed where both allow it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from podium.data.candidates import CandidateList, candidate_judgments, candidate_rankings
from podium.data.dataset import Dataset
from podium.data.files import Reporter, Source
from podium.data.formats import FORMATS, Format, format_of
from podium.data.judged import Judgments, Rankings
from podium.data.preferences import PreferenceLevels, Preferences
from podium.data.query_rows import join_rows
from podium.errors import DataError


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
    progress: Reporter | None = None,
    **options: Any,
) -> None:
    r"""Convert a file or folder to another format.

    Formats are taken from the names' endings where they are not given. Data sets go through in
    blocks of whole queries, so their size does not matter; what has rows of one query lying apart
    is read whole where the format allows it.

    Args:
        source: What to read.
        target: What to write.
        source_format: The name of its format (``podium.data.formats.FORMATS``).
        target_format: The name of the format to write.
        change: What to do with each block of a data set, say ``lambda data: data.top_k(10)``.
        progress: Called with bytes read and bytes in all.
        options: Passed on to the reader.

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
        raise DataError(f"{given.name} holds no data set to change", hint="Leave the change out.")
    bridge = _BRIDGES.get((given.kind, wanted.kind))
    if given.kind is wanted.kind:
        wanted.write(_content(given, source, change, progress, options), target)
    elif bridge is None:
        reachable = [
            name
            for name, entry in FORMATS.items()
            if entry.kind is given.kind or (given.kind, entry.kind) in _BRIDGES
        ]
        raise DataError(
            f"{given.name} cannot become {wanted.name}", hint=f"It can: {', '.join(reachable)}."
        )
    elif given.kind is Dataset:
        wanted.write(
            _joined(map(bridge, _content(given, source, change, progress, options))), target
        )
    else:
        wanted.write(bridge(_content(given, source, None, progress, options)), target)


def _content(
    given: Format,
    source: Source,
    change: Callable[[Dataset], Dataset] | None,
    progress: Reporter | None,
    options: dict[str, Any],
) -> Any:
    takes_progress = given.name not in _UNTIMED
    if takes_progress and progress is not None:
        options = {**options, "progress": progress}
    if given.stream is None or options.get("group") is not None:
        return given.read(source, **options)
    blocks = given.stream(source, **options)
    return blocks if change is None else map(change, blocks)


_UNTIMED = {name for name in FORMATS if "parquet" in name}


def _joined(parts: Iterable[Judgments]) -> Judgments:
    return Judgments(**join_rows(list(parts)))
