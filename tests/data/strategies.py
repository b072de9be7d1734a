"""Hypothesis strategies for every kind of data that Podium reads and writes."""

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from podium.data import Candidate, CandidateList, Dataset, Judgments, Rankings
from podium.data.preferences import PreferenceLevels, Preferences
from podium.data.query_rows import QueryRows

FLOAT32_EXTREMES = (0.0, -0.0, 1e-45, -1.1754944e-38, 3.4028235e38, -3.4028235e38, 0.1, 16777217.0)
FLOAT64_EXTREMES = (5e-324, -2.2250738585072014e-308, 1.7976931348623157e308, 0.1 + 0.2, -0.0)

words = st.text(st.characters(min_codepoint=33, exclude_categories=["Cs"]), min_size=1, max_size=9)
"""Ids that every format can hold: no white space, no control characters."""

unicode_strings = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
"""Any Unicode text, empty or with control characters too."""

float32s = st.sampled_from(FLOAT32_EXTREMES) | st.floats(
    width=32, allow_nan=False, allow_infinity=False
)
float64s = st.sampled_from(FLOAT64_EXTREMES) | st.floats(allow_nan=False, allow_infinity=False)


def many(elements: st.SearchStrategy, count: int, *, unique: bool = False) -> st.SearchStrategy:
    """Lists of exactly so many elements."""
    return st.lists(elements, min_size=count, max_size=count, unique=unique)


sizes = st.lists(st.integers(1, 6), min_size=1, max_size=5) | st.integers(1, 16).map(
    lambda queries: [1] * queries
)
"""Documents of each query: a few longer lists, or many queries of one document."""


@st.composite
def datasets(
    draw: st.DrawFn,
    *,
    ids: st.SearchStrategy[str] = words,
    missing: bool = True,
    named: bool = False,
) -> Dataset:
    """Data sets with or without document ids, missing features and names of features."""
    group = draw(sizes)
    rows, columns = sum(group), draw(st.integers(0, 4))
    values = float32s | st.just(np.nan) if missing else float32s
    features = np.array(draw(many(values, rows * columns)), np.float32).reshape(rows, columns)
    documents = None
    if draw(st.booleans()):
        # One id at least: a file in which no row has one has no document ids at all.
        documents = [draw(ids), *draw(many(ids | st.none() if missing else ids, rows - 1))]
    taken = ("query_id", "document_id", "label")
    names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
        lambda name: name not in taken
    )
    return Dataset.from_arrays(
        features,
        labels=draw(many(float32s, rows)),
        group=group,
        query_ids=draw(many(ids, len(group), unique=True)),
        document_ids=documents,
        feature_names=draw(many(names, columns, unique=True)) if named and columns else None,
    )


@st.composite
def _rows(draw: st.DrawFn, ids: st.SearchStrategy[str]) -> tuple[list[str], list[str]]:
    """A query id for each row, queries together, and a document id that is new in its query."""
    group = draw(sizes)
    queries = draw(many(ids, len(group), unique=True))
    documents = [each for size in group for each in draw(many(ids, size, unique=True))]
    return [query for query, size in zip(queries, group, strict=True) for _ in range(size)], (
        documents
    )


@st.composite
def judgments(draw: st.DrawFn, *, ids: st.SearchStrategy[str] = words) -> Judgments:
    """A label for each document of some queries."""
    queries, documents = draw(_rows(ids))
    return Judgments.from_columns(queries, documents, draw(many(float32s, len(queries))))


@st.composite
def rankings(draw: st.DrawFn, *, ids: st.SearchStrategy[str] = words) -> Rankings:
    """A score for each document of some queries, best first, as a run is written."""
    queries, documents = draw(_rows(ids))
    ranked = Rankings.from_columns(queries, documents, draw(many(float64s, len(queries))))
    order = np.lexsort((-ranked.scores, ranked.query_of_row))
    return Rankings.from_columns(
        queries, ranked.document_ids.take(order), ranked.scores[order], name=draw(words)
    )


@st.composite
def preferences(draw: st.DrawFn, *, ids: st.SearchStrategy[str] = words) -> Preferences:
    """Judged pairs, some of them more than once."""
    queries, left = draw(_rows(ids))
    right = [draw(ids.filter(lambda other, one=one: other != one)) for one in left]
    return Preferences.from_columns(
        queries, left, right, draw(many(st.sampled_from([-1, 0, 1]), len(left)))
    )


@st.composite
def preference_levels(
    draw: st.DrawFn, *, ids: st.SearchStrategy[str] = words, subgroups: bool = True
) -> PreferenceLevels:
    """Levels of documents within groups and subgroups."""
    queries, documents = draw(_rows(ids))
    rows = len(queries)
    names = st.sampled_from(draw(many(ids, 2)))
    return PreferenceLevels.from_columns(
        queries,
        draw(many(names, rows)),
        draw(many(names, rows)) if subgroups else ["0"] * rows,
        documents,
        draw(many(float64s, rows)),
    )


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | float64s | unicode_strings,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(unicode_strings, inner, max_size=3),
    max_leaves=4,
)
_nonempty_strings = unicode_strings.filter(bool)
_candidates = st.builds(
    Candidate,
    document_id=_nonempty_strings,
    title=unicode_strings,
    text=unicode_strings,
    html=unicode_strings,
    url=unicode_strings,
    score=st.none() | float64s | st.integers(-9, 9),
    label=st.none() | float64s,
    metadata=st.dictionaries(unicode_strings, _json, max_size=2),
)
candidate_lists = st.lists(
    st.builds(
        CandidateList,
        query_id=_nonempty_strings,
        query=unicode_strings,
        candidates=st.lists(
            _candidates, max_size=4, unique_by=lambda candidate: candidate.document_id
        ).map(tuple),
        description=unicode_strings,
    ),
    max_size=4,
    unique_by=lambda entry: entry.query_id,
)


def assert_same(actual: QueryRows, expected: QueryRows) -> None:
    """Fail unless two tables are the same to the last bit, the sign of 0 included."""
    assert type(actual) is type(expected)
    assert actual.query_ids.to_pylist() == expected.query_ids.to_pylist()
    assert actual.offsets.tolist() == expected.offsets.tolist()
    for name in expected.ROW_FIELDS:
        one, other = getattr(actual, name), getattr(expected, name)
        if isinstance(other, np.ndarray):
            assert one.dtype == other.dtype
            assert one.shape == other.shape
            assert np.array_equal(_bits(one), _bits(other)), name
        else:
            assert (None if one is None else one.to_pylist()) == (
                None if other is None else other.to_pylist()
            )
    if isinstance(expected, Dataset):
        assert actual.feature_names == expected.feature_names  # type: ignore[attr-defined]
    assert actual.equals(expected)


def _bits(values: npt.NDArray) -> npt.NDArray:
    """Numbers as their bits, every NaN alike."""
    if values.dtype.kind != "f":
        return values
    whole = np.where(np.isnan(values), np.nan, values).astype(values.dtype)
    return whole.view(f"u{values.dtype.itemsize}")
