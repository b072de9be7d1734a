"""The published LETOR-format data sets read with the counts of their description."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from podium.data import Dataset, concat_datasets, read_letor
from podium.data.description import describe
from podium.data.formats.letor import iter_letor
from podium.data.formats.text import read_group_sizes
from tests.data.shared_files import shared
from tests.data.strategies import assert_same

PARTS = {
    "letor/MQ2007": ("S", [(14013, 339), (14290, 339), (13855, 339), (13813, 339), (13652, 336)]),
    "letor/MQ2008": ("S", [(2933, 157), (3635, 157), (3062, 157), (2707, 157), (2874, 156)]),
    "letor/OHSUMED": ("S", [(2570, 21), (3076, 21), (3573, 21), (3538, 21), (3383, 22)]),
    "letor/MQ2008-agg": ("A", [(2933, 157), (3635, 157), (3062, 157), (2707, 157), (2874, 156)]),
}
WHOLES = {
    "letor/MQ2007": (69_623, 1_692, 46, [51632, 14128, 3863]),
    "letor/MQ2008": (15_211, 784, 46, [12279, 2001, 931]),
    "letor/OHSUMED": (16_140, 106, 45, [11303, 2585, 2252]),
    "letor/MQ2008-agg": (15_211, 784, 25, [12279, 2001, 931]),
}
# Fold f tests on part f + 4 and validates on part f + 3 (modulo 5); the rest is for training.
OHSUMED_PARTS = PARTS["letor/OHSUMED"][1]


def counts(data: Dataset) -> tuple[int, int, int, list[int]]:
    labels = Counter(data.labels.tolist())
    assert set(labels) == set(map(float, range(len(labels))))
    return (
        data.rows,
        len(data),
        len(data.feature_names),
        [labels[grade] for grade in sorted(labels)],
    )


def read_both_ways(path: Path) -> Dataset:
    """Read a file whole, and check that its stream gives the same."""
    whole = read_letor(path)
    assert_same(concat_datasets(list(iter_letor(path))), whole)
    return whole


@pytest.mark.parametrize("folder", WHOLES)
def test_published_parts(folder: str) -> None:
    letter, expected = PARTS[folder]
    parts = [read_both_ways(shared(f"{folder}/{letter}{n}.txt.gz")) for n in range(1, 6)]
    assert [(part.rows, len(part)) for part in parts] == expected
    whole = concat_datasets(parts)
    assert counts(whole) == WHOLES[folder]
    assert whole.document_ids.null_count == 0
    # NULL, which only the rankings to aggregate have, is missing.
    assert np.isnan(whole.features).any() == (folder == "letor/MQ2008-agg")


@pytest.mark.parametrize("fold", range(1, 6))
def test_published_folds_of_ohsumed_2(fold: int) -> None:
    names = ("training", "validation", "test")
    parts = [read_both_ways(shared(f"letor/OHSUMED-2/Fold{fold}.{name}.txt.gz")) for name in names]
    of_part = [OHSUMED_PARTS[(fold + step) % 5] for step in range(-1, 4)]
    training = (sum(rows for rows, _ in of_part[:3]), sum(queries for _, queries in of_part[:3]))
    assert [(part.rows, len(part)) for part in parts] == [training, *of_part[3:]]
    assert counts(concat_datasets(parts)) == (16_140, 106, 25, [11303, 2585, 2252])


def test_mslr_sample() -> None:
    data = read_both_ways(shared("mslr-sample/sample.txt.gz"))
    assert counts(data) == (5_681, 56, 136, [2821, 1890, 827, 101, 42])
    assert data.document_ids is None


@pytest.mark.parametrize(("name", "rows", "queries"), [("train", 3005, 201), ("test", 768, 50)])
def test_lightgbm_example_with_group_sizes_beside_it(name: str, rows: int, queries: int) -> None:
    path = shared(f"lightgbm-lambdarank/rank.{name}")
    data = read_letor(path)
    assert (data.rows, len(data), len(data.feature_names)) == (rows, queries, 300)
    sizes = read_group_sizes(f"{path}.query")
    assert data.sizes.tolist() == sizes.tolist()
    assert_same(read_letor(path, group=f"{path}.query"), data)
    with path.open("rb") as stream:
        assert_same(read_letor(stream, group=sizes), data)


def test_values_are_those_of_the_text() -> None:
    import gzip

    path = shared("letor/OHSUMED-2/Fold1.test.txt.gz")
    data = read_letor(path)
    with gzip.open(path, "rt") as lines:
        for row, line in enumerate(lines):
            numbers, _, comment = line.partition("#docid = ")
            label, query, *pairs = numbers.split()
            assert data.labels[row] == np.float32(label)
            assert f"qid:{data.query_ids[int(data.query_of_row[row])].as_py()}" == query
            expected = np.float32([float(pair.partition(":")[2]) for pair in pairs])
            assert np.array_equal(data.features[row], expected)
            assert data.document_ids[row].as_py() == comment.strip()


def test_description_of_blank_queries() -> None:
    data = read_letor(shared("letor/MQ2008/S1.txt.gz"))
    summary = describe(iter_letor(shared("letor/MQ2008/S1.txt.gz")))
    assert summary.blank_queries == sum(len(set(query.labels.tolist())) == 1 for query in data)
    assert summary.label_kind == "grades"
    assert summary.has_document_ids
