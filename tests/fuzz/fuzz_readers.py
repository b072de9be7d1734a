"""Feeding readers wrong inputs, many of them.

    python -m tests.fuzz.fuzz_readers --inputs 200000 [--seed 7] [--reader letor …]

Whatever the bytes, a reader gives data that write and read back identically, or raises DataError;
anything else, or an input that takes seconds, is a failure. The same seed makes the same inputs.
The input at work is kept in a file, so that it is at hand even if the process crashes.
"""

import argparse
import faulthandler
import io
import mmap
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from podium.data import (
    Dataset,
    Judgments,
    Rankings,
    ShardSet,
    concat_datasets,
    files,
    read_letor,
    read_parquet,
    write_letor,
    write_parquet,
    write_shards,
)
from podium.data.format_registry import FORMATS
from podium.data.formats.letor import iter_letor
from podium.data.formats.parquet import iter_parquet
from podium.data.formats.text import read_group_sizes
from podium.data.preferences import PreferenceLevels, Preferences
from podium.data.query_rows import QueryRows
from podium.data.stream import widen
from podium.errors import DataError
from tests.data.strategies import assert_same
from tests.fuzz import seeds
from tests.fuzz.mutations import mutated

MOST_SECONDS = 5.0
HUNG_SECONDS = 120.0
_LARGEST_KEPT = 1 << 20


def text_reader(name: str, text: bytes) -> None:
    """Read one of the text formats, write what was read, and read that."""
    entry = FORMATS[name]
    found = entry.read(io.BytesIO(text))
    if not isinstance(found, QueryRows):
        found = list(found)
    entry.write(found, out := io.BytesIO())
    again = entry.read(io.BytesIO(out.getvalue()))
    if isinstance(found, Rankings):
        order = np.lexsort((-found.scores, found.query_of_row))  # as a run is written
        found = Rankings.from_columns(
            found.query_id_of_row(), found.document_ids.take(order), found.scores[order]
        )
    if isinstance(found, QueryRows):
        assert_same(again, found)
    else:
        assert list(again) == found


def letor_file(folder: Path, text: bytes) -> None:
    """Read LETOR from a file, whole and streamed: both give the same."""
    path = folder / "input"
    path.write_bytes(text)
    options = {"zero_based": b"0:" in text[:200], "keep_nonfinite": len(text) % 2 == 0}
    try:
        whole = read_letor(path, **options)
    except DataError:
        assert refusal(path, options), "refused whole, and streamed it is not"
        raise
    problem = refusal(path, options)
    if problem:
        assert "are not contiguous" in problem, "refused streamed, and whole it is not"
    else:
        blocks = iter_letor(path, **options)
        assert_same(concat_datasets([widen(block, whole.feature_names) for block in blocks]), whole)
    write_letor(whole, out := io.BytesIO())
    assert_same(read_letor(io.BytesIO(out.getvalue())), whole)


def refusal(path: Path, options: dict[str, bool]) -> str:
    """What is said against streaming a LETOR file, if anything."""
    try:
        for _ in iter_letor(path, **options):
            pass
    except DataError as error:
        return error.problem
    return ""


def parquet_reader(kind: type, text: bytes) -> None:
    """Read a Parquet file, whole and streamed, write what was read, and read that."""
    found = read_parquet(io.BytesIO(text), kind)
    write_parquet(found, out := io.BytesIO())
    assert_same(read_parquet(io.BytesIO(out.getvalue()), kind), found)
    if kind is Dataset:
        blocks = list(iter_parquet(io.BytesIO(text)))
        if blocks:
            assert_same(concat_datasets(blocks), found)


def group_sizes(text: bytes) -> None:
    """Read a file of group sizes, write them, and read that."""
    found = read_group_sizes(io.BytesIO(text))
    again = "".join(f"{size}\n" for size in found).encode()
    assert read_group_sizes(io.BytesIO(again)).tolist() == found.tolist()


def shard_set(folder: Path, manifest: bytes, part: bytes, text: bytes) -> None:
    """Open and load a shard set whose manifest, or one of whose parts, is the input."""
    in_part = b"PAR1" in text[:200]
    (folder / "manifest.json").write_bytes(manifest if in_part else text)
    (folder / "part-00001.parquet").write_bytes(text if in_part else part)
    found = ShardSet.open(folder)
    data = found.load()
    assert (data.rows, len(data)) == (found.rows, found.queries)
    found.verify()
    assert_same(data, seeds.DATA)


def readers(folder: Path) -> Iterator[tuple[str, Callable[[bytes], None], list[bytes]]]:
    """Each reader's name, what to do with an input, and the right inputs it knows."""
    for name in ("letor", "qrels", "run", "pairs", "prefs", "qrels-prefs", "jsonl"):
        yield name, partial(text_reader, name), seeds.TEXTS[name]
    yield "letor file and stream", partial(letor_file, folder), seeds.TEXTS["letor"]
    yield "group sizes", group_sizes, seeds.TEXTS["group"]
    tables: dict[type, QueryRows] = {
        Dataset: seeds.DATA,
        Judgments: seeds.JUDGED,
        Rankings: seeds.RUN,
        Preferences: seeds.PAIRS,
        PreferenceLevels: seeds.LEVELS,
    }
    for kind, table in tables.items():
        yield f"parquet {kind.__name__}", partial(parquet_reader, kind), [seeds.parquet(table)]
    write_shards(seeds.DATA, folder / "set", shard_bytes=1)
    manifest = (folder / "set" / "manifest.json").read_bytes()
    part = (folder / "set" / "part-00001.parquet").read_bytes()
    yield "shards", partial(shard_set, folder / "set", manifest, part), [manifest, part]


class Kept:
    """The input at work, in a file that outlives a crash."""

    def __init__(self, path: Path) -> None:
        with path.open("wb") as file:
            file.truncate(_LARGEST_KEPT)
        with path.open("r+b") as file:
            self._bytes = mmap.mmap(file.fileno(), _LARGEST_KEPT)

    def keep(self, text: bytes) -> None:
        """Note an input: its size in eight bytes, then its bytes."""
        self._bytes[: 8 + len(text)] = len(text).to_bytes(8, "little") + text


def try_input(work: Callable[[bytes], None], text: bytes) -> str:
    """Feed one input, and say how it ended: read, refused, or how it failed."""
    begin = time.process_time()
    try:
        work(text)
        ended = "read"
    except DataError:
        ended = "refused"
    except Exception:
        ended = traceback.format_exc()
    if time.process_time() - begin > MOST_SECONDS:
        ended = f"took {time.process_time() - begin:.1f} seconds"
    return ended


def fuzz(inputs: int, seed: int, only: list[str], folder: Path) -> tuple[Counter[Any], list[str]]:
    """Feed inputs to the readers in turn; counts by reader and outcome, and what failed."""
    counts: Counter[Any] = Counter()
    failures: list[str] = []
    chosen = [entry for entry in readers(folder) if not only or entry[0] in only]
    for _, work, known in chosen:  # compiles what a first input would be blamed for
        for text in known:
            try_input(work, text)
    kept = Kept(folder / "last-input")
    for number in range(inputs):
        if number % 500 == 0:
            faulthandler.dump_traceback_later(HUNG_SECONDS, exit=True)
        name, work, known = chosen[number % len(chosen)]
        random = Random(f"{seed} {name} {number}")
        text = mutated(random, known)
        files.CHUNK_BYTES = random.choice((16, 64, 1 << 21))
        kept.keep(text)
        ended = try_input(work, text)
        if ended not in ("read", "refused"):
            failures.append(f"{name}, input {number}, {text!r}\n{ended}")
            ended = "FAILED"
        counts[name, ended] += 1
    faulthandler.cancel_dump_traceback_later()
    return counts, failures


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reader", action="append", default=[], help="only this one")
    parser.add_argument("--folder", type=Path, help="where to keep the input at work")
    chosen = parser.parse_args()
    faulthandler.enable()
    warnings.simplefilter("error")
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="podium-fuzz-"))
    folder.mkdir(exist_ok=True)
    print(f"the input at work is in {folder / 'last-input'}", flush=True)
    begin = time.perf_counter()
    counts, failures = fuzz(chosen.inputs, chosen.seed, chosen.reader, folder)
    seconds = time.perf_counter() - begin
    for name in dict.fromkeys(name for name, _ in counts):
        outcomes = {ended: count for (other, ended), count in counts.items() if other == name}
        print(
            f"{name:26}" + "".join(f"{ended} {outcomes[ended]:8,}   " for ended in sorted(outcomes))
        )
    total = counts.total()
    print(f"{total:,} inputs in {seconds:.0f} s, {len(failures)} failures, seed {chosen.seed}")
    for failure in failures[:20]:
        print(f"\n{failure}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
