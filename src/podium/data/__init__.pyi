from .candidates import Candidate, CandidateList
from .dataset import Dataset, concat_datasets
from .format_registry import FORMATS, Format
from .formats.csv import read_csv, write_csv
from .formats.jsonl import read_jsonl, write_jsonl
from .formats.letor import read_letor, write_letor
from .formats.parquet import read_parquet, write_parquet
from .formats.trec import read_pairs, read_qrels, read_run, write_pairs, write_qrels, write_run
from .judged import Judgments, Rankings
from .shard_writer import write_shards
from .shards import ShardSet

__all__ = [
    "FORMATS",
    "Candidate",
    "CandidateList",
    "Dataset",
    "Format",
    "Judgments",
    "Rankings",
    "ShardSet",
    "concat_datasets",
    "read_csv",
    "read_jsonl",
    "read_letor",
    "read_pairs",
    "read_parquet",
    "read_qrels",
    "read_run",
    "write_csv",
    "write_jsonl",
    "write_letor",
    "write_pairs",
    "write_parquet",
    "write_qrels",
    "write_run",
    "write_shards",
]
