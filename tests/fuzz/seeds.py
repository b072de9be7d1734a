"""Right inputs that the wrong ones are made of."""

import io

import numpy as np

from podium.data import Dataset, Judgments, Rankings, write_parquet
from podium.data.preferences import PreferenceLevels, Preferences

DATA = Dataset.from_arrays(
    [[0.5, 0, -1e-45], [3.4e38, np.nan, 2], [1, 2, 3], [0.1, 0.2, 0.3], [7, 8, 9]],
    labels=[2, 0, 1, 4, 0.5],
    qid=["1", "1", "été", "x#y", "x#y"],
    document_ids=["GX1", None, "d\u20ac", "a", "b"],
)
JUDGED = Judgments.from_columns(["q", "q", "p"], ["a", "b", "a"], [2, 0, 1])
RUN = Rankings.from_columns(["q", "q", "p"], ["a", "b", "a"], [0.3, 0.1, 7], name="bm25")
PAIRS = Preferences.from_columns(["q", "q", "p"], ["a", "b", "a"], ["b", "c", "c"], [1, -1, 0])
LEVELS = PreferenceLevels.from_columns(
    ["q", "q", "p"], ["g", "g", "h"], ["s", "s", "s"], ["a", "b", "a"], [2, 1, 0]
)

TEXTS: dict[str, list[bytes]] = {
    "letor": [
        b"2 qid:1 1:0.5 2:7 #docid = GX1 inc = 1 prob = 0.08\n0 qid:1 2:1\n1 qid:2 1:3e-5 9:.5\n",
        b"0 qid:10 1:1.000000 2:0.871264 3:NULL #docid = 244338\r\n1 qid:10 1:-4.5 3:+2 #\r\n",
        "1 qid:été 1:0.1\n3 qid:été 2:123456789.123456789\n0 qid:z 12:0.33333333333333333".encode(),
        b"# comment\n\n2 qid:7 1:1 2:2 3:3 4:4 5:5 6:6 7:7 8:8\n" * 3,
        b"".join(b"%d qid:%d 1:%d 2:0.%06d\n" % (n % 3, n // 5, n, n * 37) for n in range(40)),
    ],
    "qrels": [b"q1 0 doc1 2\nq1 0 doc2 0\nq2 Q0 doc1 0.5\n", b"301\t0\tCR93E-1\t-1\r\n"],
    "run": [
        b"q1 Q0 a 1 7.5 bm25\nq1 Q0 b 2 3 bm25\nq2 Q0 a 1 -1e-3 bm25\n",
        b"302\tQ0\tFR940126-2-00100\t114\t  1.582296\tSTANDARD\r\n",
    ],
    "pairs": [b"q a b b\nq a c =\nq b a b\np x y x\n"],
    "prefs": [b"q u1 s a 2\nq u1 s b 1\nq u2 t a 0.5\n"],
    "qrels-prefs": [b"q u1 a 2\nq u1 b 1\np u2 a 0.5\n"],
    "jsonl": [
        b'{"query_id": "q1", "query": "red shoes", "candidates": [{"document_id": "d1", '
        b'"title": "t", "text": "x", "url": "u", "html": "<b>", "score": 7.5, "label": 2, '
        b'"metadata": {"a": [1, null, {"b": 1e-5}]}}, {"document_id": "d2"}]}\n'
        b'{"query_id": "q2", "query": "", "candidates": [], "description": "\\ud83d\\ude00"}\n',
    ],
    "group": [b"3\n1\n20\n", b"  7\r\n\n8\r\n"],
}


def parquet(table: object) -> bytes:
    """A table as a Parquet file."""
    write_parquet(table, out := io.BytesIO())  # type: ignore[arg-type]
    return out.getvalue()
