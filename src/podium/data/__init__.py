"""Query-grouped data and its file formats, used by every other package."""

from podium.data.candidates import (
    Candidate,
    CandidateList,
    candidate_judgments,
    candidate_rankings,
)
from podium.data.conversion import convert, dataset_judgments
from podium.data.dataset import Dataset, Query, concat_datasets
from podium.data.description import Description, describe
from podium.data.formats import FORMATS, Format, format_of
from podium.data.formats.csv import read_csv, write_csv
from podium.data.formats.jsonl import read_jsonl, write_jsonl
from podium.data.formats.letor import iter_letor, read_letor, write_letor
from podium.data.formats.parquet import iter_parquet, read_parquet, write_parquet
from podium.data.formats.trec import (
    read_pairs,
    read_prefs,
    read_qrels,
    read_run,
    write_pairs,
    write_prefs,
    write_qrels,
    write_run,
)
from podium.data.judged import Joined, Judgments, Rankings
from podium.data.labels import from_ranks, label_kind, to_full_order, to_top_k
from podium.data.pool import run_candidates
from podium.data.preferences import PreferenceLevels, Preferences
from podium.data.shard_writer import write_shards
from podium.data.shards import Shard, ShardSet
from podium.data.sources import TableSource, as_judgments, as_rankings

__all__ = [
    "FORMATS",
    "Candidate",
    "CandidateList",
    "Dataset",
    "Description",
    "Format",
    "Joined",
    "Judgments",
    "PreferenceLevels",
    "Preferences",
    "Query",
    "Rankings",
    "Shard",
    "ShardSet",
    "TableSource",
    "as_judgments",
    "as_rankings",
    "candidate_judgments",
    "candidate_rankings",
    "concat_datasets",
    "convert",
    "dataset_judgments",
    "describe",
    "format_of",
    "from_ranks",
    "iter_letor",
    "iter_parquet",
    "label_kind",
    "read_csv",
    "read_jsonl",
    "read_letor",
    "read_pairs",
    "read_parquet",
    "read_prefs",
    "read_qrels",
    "read_run",
    "run_candidates",
    "to_full_order",
    "to_top_k",
    "write_csv",
    "write_jsonl",
    "write_letor",
    "write_pairs",
    "write_parquet",
    "write_prefs",
    "write_qrels",
    "write_run",
    "write_shards",
]
