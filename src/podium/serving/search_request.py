"""What a client asks of ``/search``."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.datastructures import QueryParams

from podium.serving.refusal import Refusal, decoding
from podium.serving.search_ids import LONGEST_ID, OptionalId, OptionalSearchId

LONGEST_QUERY = 1_000
UNCHANGED = frozenset({"from", "size", "search_id", "query_id", "client", "interleave"})
_KEYS = UNCHANGED | {"q", "fields"}
_COLUMN = "columns."


class SearchRequest(msgspec.Struct, forbid_unknown_fields=True, rename={"start": "from"}):
    """A page of a query's results.

    Attributes:
        query: The words to search for.
        start: How many results come before the page.
        size: The length of the page.
        fields: The stored fields to return.
        columns: Other values of the query that features use, by name.
        search_id: The id of this search, for the answer and the ranking log.
        query_id: The id of the query, for the ranking log.
        client: Who searches, for interleaving; the ranking log has a hash.
        interleave: Whether two models may rank it: not where users chose the order.
    """

    query: Annotated[str, Meta(min_length=1, max_length=LONGEST_QUERY)]
    start: Annotated[int, Meta(ge=0, le=1_000)] = 0
    size: Annotated[int, Meta(ge=1, le=1_000)] = 10
    fields: Annotated[list[str], Meta(max_length=200)] = []
    columns: Annotated[
        dict[str, Annotated[str, Meta(max_length=LONGEST_QUERY)]], Meta(max_length=200)
    ] = {}
    search_id: OptionalSearchId = None
    query_id: OptionalId = None
    client: Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)] | None = None
    interleave: bool = True


_decode = msgspec.json.Decoder(SearchRequest).decode


def parse_search(body: bytes) -> SearchRequest:
    """Parse the body of a POST; a Refusal if it is not valid."""
    with decoding():
        return _decode(body)


def parse_search_parameters(parameters: QueryParams) -> SearchRequest:
    """Parse the parameters of a GET, with commas in ``fields``, and ``columns.NAME`` for each."""
    columns = {key for key in parameters if key.startswith(_COLUMN)}
    unknown = set(parameters) - _KEYS - columns
    if unknown:
        raise Refusal(400, f"there is no parameter {min(unknown)!r}")
    if len(parameters.multi_items()) > len(parameters):
        raise Refusal(400, "a parameter is given twice")
    content: dict[str, object] = {"query": parameters.get("q", "")}
    content |= {name: value for name, value in parameters.items() if name in UNCHANGED}
    content["columns"] = {key.removeprefix(_COLUMN): parameters[key] for key in columns}
    if parameters.get("fields"):
        content["fields"] = parameters["fields"].split(",")
    with decoding():
        return msgspec.convert(content, SearchRequest, strict=False)


def check_search(
    request: SearchRequest, depth: int, fields: Collection[str], columns: Collection[str]
) -> None:
    """Raise a Refusal for a page beyond the candidates, or for names that are not known."""
    if request.start + request.size > depth:
        raise Refusal(400, f"from + size is larger than {depth}, the number of ranked candidates")
    for field in request.fields:
        if field not in fields:
            raise Refusal(400, f"the field {field!r} is not among those that may be returned")
    for column in request.columns:
        if column not in columns:
            raise Refusal(400, f"no feature uses the column {column!r}")
    if not request.query.strip() or "\0" in request.query:
        raise Refusal(400, "the query has no words")
