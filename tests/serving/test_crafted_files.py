"""Small files that stand for large ones are refused before they take memory."""

from __future__ import annotations

import json
import re
import struct
import zipfile
import zlib
from io import BytesIO

import pytest

from podium.errors import DataError
from podium.export.reading import ranker_of_bytes
from podium.rankers.storage import FOLDER_FILE
from podium.scorers.lightgbm_file import read_lightgbm
from podium.scorers.xgboost_file import read_xgboost
from tests.export.trained import lightgbm_model, xgboost_model

HEADER = json.dumps({"version": 2, "kind": "LinearRanker", "metadata": {}}).encode()


def entry(name: bytes, content: bytes) -> bytes:
    """The local header of an entry, which its content follows."""
    numbers = (20, 0, 0, 0, 33, zlib.crc32(content), len(content), len(content), len(name), 0)
    return struct.pack("<4s5H3L2H", b"PK\x03\x04", *numbers) + name


def nested_zip(first: str, count: int, size: int) -> bytes:
    """A zip whose entries contain all that follow them, so that its size counts many times."""
    after = b"x" * size
    heads, contents = [], []
    for number in range(count):
        heads.append(entry(b"%04d.bin" % number, after))
        contents.append(after)
        after = heads[-1] + after
    body = entry(first.encode(), HEADER) + HEADER
    listed = [(0, body)]
    for head, content in zip(reversed(heads), reversed(contents), strict=True):
        listed.append((len(body), head + content))
        body += head
    body += contents[0]
    directory = b"".join(
        b"PK\x01\x02" + struct.pack("<H", 20) + local[4:30] + struct.pack("<3H2L", 0, 0, 0, 0, at)
        + local[30 : 30 + struct.unpack("<H", local[26:28])[0]]
        for at, local in listed
    )  # fmt: skip
    end = (0, 0, len(listed), len(listed), len(directory), len(body), 0)
    return body + directory + struct.pack("<4s4H2LH", b"PK\x05\x06", *end)


@pytest.mark.parametrize("first", ["ranker.json", FOLDER_FILE])
def test_entries_that_overlap_are_refused(first):
    content = nested_zip(first, 60, 1 << 16)
    with zipfile.ZipFile(BytesIO(content)) as file:
        assert file.testzip() is None
        assert sum(each.file_size for each in file.infolist()) > 50 * len(content)
    with pytest.raises(DataError, match="overlap"):
        ranker_of_bytes(content)


@pytest.mark.parametrize("shape", ["(10**13,)", "(2**70,)", "(-1,)", "((1,)", "(" * 5000])
def test_arrays_that_are_not_there_are_refused(shape):
    written = "(10000000000000,)" if shape == "(10**13,)" else shape.replace("2**70", str(2**70))
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {written}}}\n".encode()
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text
    with pytest.raises(DataError, match="not a saved ranker"):
        ranker_of_bytes(archive(array))


def test_an_encrypted_file_is_refused():
    content = archive(b"")
    for start, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.index(start) + flags
        content = content[:at] + b"\x01" + content[at + 1 :]
    with pytest.raises(DataError, match="encrypted"):
        ranker_of_bytes(content)


def archive(array: bytes) -> bytes:
    output = BytesIO()
    with zipfile.ZipFile(output, "w") as file:
        file.writestr("ranker.json", HEADER)
        file.writestr("weights.npy", array)
    return output.getvalue()


def test_category_sets_of_xgboost_that_overlap_are_refused():
    booster = xgboost_model(5)
    content = json.loads(booster.save_raw("json").decode())
    trees = content["learner"]["gradient_booster"]["model"]["trees"]
    tree = next(each for each in trees if len(each["categories_nodes"]) > 1)
    read_xgboost(json.dumps(content).encode())
    tree["categories_segments"] = [0] * len(tree["categories_segments"])
    tree["categories_sizes"] = [len(tree["categories"])] * len(tree["categories_sizes"])
    with pytest.raises(DataError, match="overlap"):
        read_xgboost(json.dumps(content).encode())


def test_nodes_of_lightgbm_with_one_category_set_share_it():
    text = lightgbm_model().model_to_string()
    head, *trees = text.split("\nTree=")
    at = next(n for n, tree in enumerate(trees) if not re.search(r"num_cat=[01]\n", tree))
    kinds, thresholds = (
        re.search(rf"^{name}=(.*)$", trees[at], re.MULTILINE)[1].split()
        for name in ("decision_type", "threshold")
    )
    node = next(n for n, each in enumerate(thresholds) if int(kinds[n]) & 1 and each == "1")
    shared = [*thresholds[:node], "0", *thresholds[node + 1 :]]
    trees[at] = trees[at].replace(" ".join(thresholds), " ".join(shared))
    model = read_lightgbm("\nTree=".join([head, *trees]).encode())
    assert len(model.category_sets) == len(read_lightgbm(text.encode()).category_sets) - 1
