"""Candidates from a running search engine: OpenSearch, Elasticsearch or Solr.

A server that fetches what its users name could be made to call anything it can reach. So only
engines that the server's settings list are called, by exact host and port, only where they search
and not where they write, redirects are not followed, and answers are cut off by size and time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Literal
from urllib.parse import parse_qsl, unquote, urlsplit

import httpx2
from pydantic import BaseModel, ConfigDict, Field

from podium.data import Candidate, CandidateList
from podium.data.json_lines import parse_json
from podium.errors import DataError
from podium.http_answers import LimitedTransport
from podium.studio.errors import RefusedError
from podium.studio.json_types import JsonObject
from podium.studio.settings import listed_entry
from podium.studio.store.metadata import plain_fields
from podium.studio.transfer.readers import MAX_DEPTH, ImportedQuery, QueryText
from podium.studio.transfer.search_grammar import refused_in_search, refused_in_solr

_SECONDS = 20.0
_MAX_BYTES = 32 << 20
_SEARCHES = {"opensearch": ("_search",), "elasticsearch": ("_search",), "solr": ("select", "query")}
"""The last part of the paths that search; every other may write, as ``_delete_by_query`` does."""
_READS = {"routing", "preference", "search_pipeline", "search_type", "request_cache",
          "ignore_unavailable", "allow_no_indices", "expand_wildcards"}  # fmt: skip
"""What may stand after the path of OpenSearch and Elasticsearch; Solr takes all in the body."""
_INDEX = re.compile(r"[A-Za-z0-9*-][A-Za-z0-9*,._-]*")
"""Names of indices, aliases and collections; what begins with an underscore is an action."""
QUERY, SIZE = "{{query}}", "{{size}}"

DEFAULTS = {
    "opensearch": {"query": {"query_string": {"query": QUERY}}, "size": SIZE},
    "elasticsearch": {"query": {"query_string": {"query": QUERY}}, "size": SIZE},
    "solr": {"query": "{!edismax v=$words}", "params": {"words": QUERY}, "limit": SIZE},
}
"""A request that finds something on most engines; people write better ones for theirs."""


class EngineSearch(BaseModel):
    r"""How candidates are fetched.

    The template is JSON. A text in it that is exactly ``{{query}}`` becomes the query's words and
    ``{{size}}`` the number of documents, as JSON values: words can never become a part of the
    request's structure.

    Example:
        >>> search = EngineSearch(url="http://localhost:9200/shop/_search", queries="q1\tshoes")
        >>> search.title_field
        'title'
    """

    model_config = ConfigDict(extra="forbid")

    kind: Literal["opensearch", "elasticsearch", "solr"] = "opensearch"
    url: str = Field(max_length=2000)
    queries: str = Field(max_length=5_000_000)
    template: str = Field(default="", max_length=100_000)
    depth: int = Field(default=50, ge=2, le=MAX_DEPTH)
    id_field: str = Field(default="", max_length=200)
    title_field: str = Field(default="title", max_length=200)
    text_field: str = Field(default="text", max_length=200)
    url_field: str = Field(default="url", max_length=200)


def bound(template: object, query: str, size: int) -> object:
    """A template with its values inserted, wherever a whole string stands for one.

    Example:
        >>> bound({"q": "{{query}}", "n": "{{size}}"}, 'x", "admin": true', 10)
        {'q': 'x", "admin": true', 'n': 10}
    """
    if template == QUERY:
        return query
    if template == SIZE:
        return size
    if isinstance(template, dict):
        return {key: bound(value, query, size) for key, value in template.items()}
    if isinstance(template, list):
        return [bound(value, query, size) for value in template]
    return template


def allowed(url: str, engines: Sequence[str]) -> str:
    """The entry of the settings that a URL belongs to; refused if there is none.

    Example:
        >>> allowed("http://search:9200/shop/_search", ["http://search:9200/"])
        'http://search:9200/'
        >>> allowed("http://search:9200@elsewhere/shop", ["http://search:9200/"])
        Traceback (most recent call last):
        podium.studio.errors.RefusedError: This server may not call that search engine. ...
    """
    entry = listed_entry(url, engines)
    if entry is not None:
        return entry
    raise RefusedError(
        422,
        "This server may not call that search engine. Its administrator lists the allowed ones in "
        "PODIUM_STUDIO_ENGINES.",
    )


def check_search(search: EngineSearch, engines: Sequence[str]) -> JsonObject:
    """The template as JSON, if everything about a search is in order."""
    _check_reads(search, allowed(search.url, engines))
    if not search.template.strip():
        return DEFAULTS[search.kind]
    try:
        template = parse_json(search.template.encode())
    except DataError as error:
        raise RefusedError(422, "The template %(problem)s", problem=str(error)) from error
    if not isinstance(template, dict) or bound(template, "a", 1) == bound(template, "b", 1):
        raise RefusedError(
            422, "The template must be a JSON object with “%(query)s” in it.", query=QUERY
        )
    if (refused := _refused(search, template)) is not None:
        raise RefusedError(
            422,
            "The template may not use “%(name)s”: only what reads the named index alone is "
            "allowed.",
            name=refused,
        )
    return template


def _refused(search: EngineSearch, request: object) -> str | None:
    """The first part of a request that is not allowed, if there is one."""
    assert isinstance(request, dict)
    refused = refused_in_solr if search.kind == "solr" else refused_in_search
    return next((name[:200] for name in refused(request)), None)


def _check_reads(search: EngineSearch, engine: str) -> None:
    """Whether a URL is of a search, which changes nothing.

    Before its last part it may name an index: ``/shop/_doc/_search`` would write a document whose
    id is ``_search``.
    """
    parts = urlsplit(search.url)
    rest = parts.path.removeprefix(urlsplit(engine).path.rstrip("/")).split("/")[1:-1]
    depth = 2 if search.kind == "solr" else 1  # /solr/shop/select
    if len(rest) > depth or not all(map(_INDEX.fullmatch, rest)):
        raise RefusedError(422, "The part of the URL before the last slash may only name an index.")
    ends = _SEARCHES[search.kind]
    if parts.path.rpartition("/")[2] not in ends:
        raise RefusedError(
            422, "The URL must end in %(ends)s.", ends=", ".join(f"/{end}" for end in ends)
        )
    asked = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    if odd := sorted(asked - (_READS if search.kind != "solr" else set())):
        raise RefusedError(422, "%(name)s: set it in the template, not in the URL.", name=odd[0])


def fetch(
    search: EngineSearch, asked: Sequence[QueryText], engines: Sequence[str]
) -> Iterator[ImportedQuery]:
    """Each query's candidates, best first."""
    template = check_search(search, engines)
    entry = urlsplit(allowed(search.url, engines))
    login = None
    if entry.username is not None:
        login = httpx2.BasicAuth(unquote(entry.username), unquote(entry.password or ""))
    # Without the environment's proxies and .netrc: the address is called, and nothing else.
    transport = LimitedTransport(_SECONDS, _MAX_BYTES)
    with httpx2.Client(
        transport=transport, follow_redirects=False, trust_env=False, auth=login
    ) as client:
        for each in asked:
            request = bound(template, each.query, search.depth)
            # The query's words may choose a parser of Solr as well.
            if _refused(search, request) is not None:
                raise DataError(
                    f"Solr would read query {each.query_id!r} as more than words",
                    hint="Leave out {!, ${ and _query_.",
                )
            response = _ask(client, search.url, request)
            yield ImportedQuery(_candidates(search, each, response))


def _ask(client: httpx2.Client, url: str, request: object) -> object:
    try:
        answer = client.post(
            url,
            content=json.dumps(request).encode(),
            headers={"content-type": "application/json", "accept": "application/json"},
        )
    except (httpx2.ReadError, httpx2.ReadTimeout) as error:
        raise DataError(
            f"the search engine's response cannot be read: {error}",
            hint="Ask for fewer documents, or leave fields out.",
        ) from error
    except httpx2.HTTPError as error:
        raise DataError(
            f"the search engine cannot be reached ({type(error).__name__})", hint="Check the URL."
        ) from error
    if answer.status_code != 200:
        # Its content is not repeated: it may be anything, and users may not be allowed to see it.
        raise DataError(
            f"the search engine answered with status {answer.status_code}",
            hint="Try the request there first.",
        )
    response: object = parse_json(answer.content)
    return response


def _candidates(search: EngineSearch, asked: QueryText, response: object) -> CandidateList:
    try:
        if search.kind == "solr":
            hits = [
                (str(_field(document, search.id_field or "id")), document)
                for document in _list(response, "response.docs")
            ]
        else:
            id_path = f"_source.{search.id_field}" if search.id_field else "_id"
            hits = [
                (str(_field(hit, id_path)), _field(hit, "_source"))
                for hit in _list(response, "hits.hits")
            ]
    except KeyError as error:
        raise DataError(
            f"the response to {asked.query!r} is not a list of documents from {search.kind}",
            hint="Check the kind of engine, the URL and the id field.",
        ) from error
    used = {search.id_field or "id", search.title_field, search.text_field, search.url_field}
    # Engines score each query on its own scale and ties are common: the order is what counts.
    candidates = tuple(
        Candidate(
            name,
            title=_text(document, search.title_field),
            text=_text(document, search.text_field),
            url=_text(document, search.url_field),
            score=float(len(hits) - rank),
            metadata=plain_fields(document, used) if isinstance(document, dict) else {},
        )
        for rank, (name, document) in enumerate(hits[: search.depth])
    )
    return CandidateList(asked.query_id, asked.query, candidates, asked.description)


def _field(document: object, path: str) -> object:
    """What a dotted path leads to; KeyError if it leads nowhere."""
    for part in path.split("."):
        if not isinstance(document, dict):
            raise KeyError(part)
        document = document[part]
    return document


def _list(document: object, path: str) -> list[object]:
    value = _field(document, path)
    if not isinstance(value, list):
        raise KeyError(path)
    return value


def _text(document: object, path: str) -> str:
    if not path:
        return ""
    try:
        value = _field(document, path)
    except KeyError:
        return ""
    if isinstance(value, list):
        return "\n".join(str(each) for each in value)
    return "" if value is None else str(value)
