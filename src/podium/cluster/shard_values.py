"""Per-query values written back as shards, and what an evaluation over shards comes to.

The values of a shard's queries are a Parquet file of the same name: ``query_id``, and a column
for each run and measure. ``values.json`` is written last and has the sums, counts, and each
file's queries, bytes and SHA-256: a folder without it is not complete.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from podium.cluster.filesystems import as_url, display_url, file_system, read_bytes, write_bytes
from podium.data.formats.parquet_file import open_parquet
from podium.data.grouping import as_strings
from podium.errors import DataError
from podium.measures import Conventions
from podium.measures.evaluation import ByMeasure, Evaluation, concat_evaluations
from podium.measures.names import parse_measure
from podium.measures.registry import Measure, definition_of

VALUES = "values.json"
VERSION = 1


@dataclass(frozen=True)
class ShardValues:
    """The result of one shard.

    Attributes:
        queries: How many queries it has.
        sums: For each run and measure, the sum over queries that have a value.
        counts: How many have one.
        evaluations: The values themselves, one evaluation a run, unless they were written.
        written: The file they were written to: name, queries, bytes and SHA-256.
    """

    queries: int
    sums: NDArray[np.float64]
    counts: NDArray[np.int64]
    evaluations: tuple[Evaluation, ...] = ()
    written: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class ShardedEvaluation(Mapping[str, Evaluation]):
    """The values of several runs on a shard set: a mapping from a run's name to its evaluation.

    Means come from sums over shards; the values of single queries are read when they are asked
    for, if they were written to a folder.

    Attributes:
        runs: Their names.
        measures: What was measured.
        queries: How many queries there are.
        means: For each run the mean of each measure over the queries that have a value.
        output: Where the values of single queries are, if they were written.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from podium.cluster import evaluate_shards
        >>> from podium.data import Dataset, write_shards
        >>> data = Dataset.from_arrays(
        ...     [[0.2], [0.9]], labels=[1, 0], qid=["a", "a"], feature_names=["score"]
        ... )
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = write_shards(data, f"{folder}/scored")
        ...     _ = evaluate_shards("RR", f"{folder}/scored", output=f"{folder}/values")
        ...     ShardedEvaluation.open(f"{folder}/values")["score"]
        Evaluation(1 queries, RR=0.5)
    """

    runs: tuple[str, ...]
    measures: tuple[Measure, ...]
    conventions: Conventions
    queries: int
    sums: NDArray[np.float64]
    counts: NDArray[np.int64]
    evaluations: Mapping[str, Evaluation] | None
    output: str | None
    files: tuple[dict[str, Any], ...] = ()

    @classmethod
    def of(
        cls,
        runs: Sequence[str],
        measures: Sequence[Measure],
        conventions: Conventions,
        parts: Sequence[ShardValues],
        output: str | None,
    ) -> ShardedEvaluation:
        """Put shards together, in their order: their sums do not depend on who was quick."""
        evaluations = None
        if output is None:
            evaluations = {
                run: concat_evaluations([part.evaluations[at] for part in parts])
                for at, run in enumerate(runs)
            }
        return cls(
            tuple(runs),
            tuple(measures),
            conventions,
            sum(part.queries for part in parts),
            np.sum([part.sums for part in parts], axis=0),
            np.sum([part.counts for part in parts], axis=0),
            evaluations,
            output,
            tuple(part.written for part in parts if part.written),
        )

    @classmethod
    def open(cls, output: str | os.PathLike[str]) -> ShardedEvaluation:
        """Open a folder of values by its path or URL."""
        url = as_url(output)
        try:
            content = json.loads(read_bytes(url, VALUES))
            if content["version"] != VERSION:
                raise ValueError(f"version {content['version']}, this Podium reads {VERSION}")
            return cls(
                tuple(content["runs"]),
                tuple(parse_measure(text) for text in content["measures"]),
                _conventions(content["conventions"]),
                int(content["queries"]),
                np.array(content["sums"], np.float64),
                np.array(content["counts"], np.int64),
                None,
                url,
                tuple(content["files"]),
            )
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"has no values of an evaluation ({error})",
                path=display_url(url),
                hint="Evaluate again.",
            ) from error

    @property
    def means(self) -> dict[str, ByMeasure[float]]:
        """For each run the mean of each measure, by any of its names.

        NaN where no query has a value.
        """
        if any(definition_of(measure).aggregate != "mean" for measure in self.measures):
            return {run: self[run].means for run in self.runs}
        with np.errstate(invalid="ignore"):
            means = self.sums / self.counts
        return {
            run: ByMeasure(zip(self.measures, row.tolist(), strict=True))
            for run, row in zip(self.runs, means, strict=True)
        }

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Any:
        return iter(self.runs)

    def __getitem__(self, run: str) -> Evaluation:
        if run not in self.runs:
            raise KeyError(f"{run!r} was not evaluated; there are: {', '.join(self.runs)}")
        if self.evaluations is not None:
            return self.evaluations[run]
        return concat_evaluations([self._read(entry, run) for entry in self.files])

    def __repr__(self) -> str:
        means = [
            f"{run}: " + ", ".join(f"{measure!r}={mean:.4g}" for measure, mean in row.items())
            for run, row in self.means.items()
        ]
        return f"ShardedEvaluation({self.queries} queries; {'; '.join(means)})"

    def _read(self, entry: dict[str, Any], run: str) -> Evaluation:
        files, folder = file_system(str(self.output))
        names = {measure: column_name(run, measure) for measure in self.measures}
        with (
            files.open_input_file(f"{folder}/{entry['file']}") as raw,
            open_parquet(raw) as file,
        ):
            table = file.read(columns=["query_id", *names.values()])
        if len(table) != entry["queries"]:
            raise DataError(
                f"has {len(table)} queries, not {entry['queries']}",
                path=display_url(str(self.output), entry["file"]),
                hint="Evaluate again.",
            )
        values = ByMeasure({measure: table[name].to_numpy() for measure, name in names.items()})
        return Evaluation(as_strings(table["query_id"], "query ids"), values, self.conventions)

    def write_summary(self) -> None:
        """Write what makes the folder complete."""
        content = {
            "version": VERSION,
            "runs": self.runs,
            "measures": [repr(measure) for measure in self.measures],
            "conventions": asdict(self.conventions),
            "queries": self.queries,
            "sums": self.sums.tolist(),
            "counts": self.counts.tolist(),
            "files": self.files,
        }
        write_bytes(json.dumps(content, indent=1).encode(), str(self.output), VALUES)


def _conventions(fields: dict[str, Any]) -> Conventions:
    exceptions = tuple((str(a), str(b), value) for a, b, value in fields.pop("exceptions"))
    return Conventions(**fields, exceptions=exceptions)


def column_name(run: str, measure: Measure) -> str:
    """The column of a run's values of a measure."""
    return f"{run} {measure!r}"


def write_values(output: str, name: str, runs: Mapping[str, Evaluation]) -> dict[str, Any]:
    """Write the values of a shard's queries; gives the file's entry in the summary."""
    first = next(iter(runs.values()))
    columns: dict[str, Any] = {"query_id": first.query_ids.cast(pa.string())}
    for run, evaluation in runs.items():
        columns |= {
            column_name(run, measure): value for measure, value in evaluation.values.items()
        }
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), buffer, compression="zstd")
    content = buffer.getvalue()
    write_bytes(content, output, name)
    digest = hashlib.sha256(content).hexdigest()
    return {"file": name, "queries": len(first), "bytes": content.size, "sha256": digest}
