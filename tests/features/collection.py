"""A made-up collection with text and numbers, its queries, and definitions of features."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

WORDS = 400
DEFINITIONS = """\
[candidates]
template = { multi_match = { query = "{{query}}", fields = ["title", "body"] } }
solr = "{!dismax qf='title body'}{{query}}"

[[feature]]
name = "title_match"
source = "engine"
template = { match = { title = "{{query}}" } }
solr = "{!dismax qf=title}{{query}}"

[[feature]]
name = "body_match"
source = "engine"
template = { match = { body = "{{query}}" } }
solr = "{!dismax qf=body}{{query}}"
missing = 0

[[feature]]
name = "place_match"
source = "engine"
template = { match = { body = "{{place}}" } }
solr = "{!field f=body}{{place}}"
missing = 0.25

[[feature]]
name = "popularity"
source = "field"
field = "clicks"

[[feature]]
name = "age"
source = "field"
field = "days"
type = "int"
missing = 9
"""
MORE = """
[[feature]]
name = "query_words"
source = "query"
property = "words"
type = "int"

[[feature]]
name = "country"
source = "query"
column = "country"
type = "category"
categories = ["at", "de"]

[[feature]]
name = "overlap"
source = "function"
function = "term_overlap"
field = "title"

[[feature]]
name = "kind"
source = "field"
field = "kind"
type = "category"
categories = ["new", "used"]
missing = 7
"""


@dataclass(frozen=True)
class Collection:
    """Documents, and queries with the grades of some of them.

    Attributes:
        documents: The documents by id.
        queries: Lines of a file of queries.
        grades: The grade of a document for a query.
    """

    documents: dict[str, dict[str, Any]]
    queries: list[dict[str, str]]
    grades: dict[tuple[str, str], int] = field(default_factory=dict)

    def write_queries(self, path: Path) -> Path:
        path.write_text("".join(json.dumps(query) + "\n" for query in self.queries))
        return path

    def write_qrels(self, path: Path) -> Path:
        lines = (f"{query} 0 {document} {g}\n" for (query, document), g in self.grades.items())
        path.write_text("".join(lines))
        return path


def collection(documents: int = 300, queries: int = 50, seed: int = 0) -> Collection:
    """Draw documents whose words and numbers decide how good they are for a query."""
    random = np.random.default_rng(seed)
    words = [f"w{number}" for number in range(WORDS)]
    shares = 1.0 / np.arange(1, WORDS + 1)
    shares /= shares.sum()

    def text(length: int) -> str:
        return " ".join(random.choice(words, length, p=shares))

    content: dict[str, dict[str, Any]] = {}
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for number in range(documents):
        document: dict[str, Any] = {"title": text(6), "body": text(int(random.integers(10, 60)))}
        if random.random() < 0.8:
            document["clicks"] = float(np.float32(random.gamma(1.0, 2.0)))
        if random.random() < 0.8:
            document["days"] = int(random.integers(0, 1000))
        if random.random() < 0.8:
            document["kind"] = str(random.choice(["new", "used", "odd"]))
        content[f"d{number}"] = document
        for word in f"{document['title']} {document['body']}".split():
            counts[word][f"d{number}"] += 1
    asked: list[dict[str, str]] = []
    grades: dict[tuple[str, str], int] = {}
    for number in range(queries):
        terms = random.choice(words[:150], int(random.integers(1, 4)), replace=False)
        query = {
            "id": f"q{number}",
            "text": " ".join(terms),
            "place": str(random.choice(words[:50])),
            "country": str(random.choice(["at", "de", "fr"])),
        }
        asked.append(query)
        matches = sum((counts[term] for term in terms), Counter[str]())
        for name, count in matches.items():
            document = content[name]
            worth = count + document.get("clicks", 0) - document.get("days", 0) / 500
            grades[query["id"], name] = int(np.clip(round(worth), 0, 4))
    return Collection(content, asked, grades)


def batches(items: list[Any], size: int = 2000) -> Iterator[list[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def fill_opensearch(
    url: str,
    index: str,
    documents: dict[str, dict[str, Any]],
    *,
    shards: int = 1,
    replicas: int = 0,
) -> str:
    """Index documents in place of others, by default into one shard; return the address."""
    properties = {
        "title": {"type": "text"}, "body": {"type": "text"}, "kind": {"type": "keyword"},
        "clicks": {"type": "float"}, "days": {"type": "integer"},
    }  # fmt: skip
    body = {
        "settings": {"number_of_shards": shards, "number_of_replicas": replicas},
        "mappings": {"properties": properties},
    }
    with httpx2.Client(base_url=url, trust_env=False, timeout=120) as client:
        client.delete(f"/{index}")
        client.put(f"/{index}", json=body).raise_for_status()
        for batch in batches(list(documents.items())):
            lines = []
            for name, document in batch:
                lines += [json.dumps({"index": {"_id": name}}), json.dumps(document)]
            answer = client.post(
                f"/{index}/_bulk?refresh=true",
                content="\n".join([*lines, ""]),
                headers={"content-type": "application/x-ndjson"},
            )
            answer.raise_for_status()
            assert not answer.json()["errors"]
    return f"{url}/{index}"


def fill_solr(core: str, documents: dict[str, dict[str, Any]]) -> str:
    """Index documents into an empty core; return its address."""
    fields = [
        {"name": "body", "type": "text_general", "indexed": True, "stored": True},
        {"name": "kind", "type": "string", "indexed": True, "stored": True},
        {"name": "clicks", "type": "pfloat", "stored": False},
        {"name": "days", "type": "pint", "stored": False},
    ]
    with httpx2.Client(trust_env=False, timeout=120) as client:
        known = {each["name"] for each in client.get(f"{core}/schema/fields").json()["fields"]}
        missing = [each for each in fields if each["name"] not in known]
        if missing:
            client.post(f"{core}/schema", json={"add-field": missing}).raise_for_status()
        for batch in batches([{"id": name, **each} for name, each in documents.items()]):
            client.post(f"{core}/update?commit=true", json=batch).raise_for_status()
    return core
