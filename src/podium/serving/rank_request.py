"""Documents with named features, read straight from JSON into a matrix.

Each model has a decoder that is made for its features: msgspec checks names and types while it
parses, and no dictionary is built for a document.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import UNSET, Meta, UnsetType

from podium.data.definitions_hash import require_same_definitions
from podium.errors import DataError
from podium.kernels import Doubles
from podium.serving.refusal import Refusal, decoding
from podium.serving.rows import Rows, row_type
from podium.serving.search_ids import LONGEST_ID, LONGEST_QUERY, Id, OptionalId, OptionalSearchId

_Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")] | None
_Client = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)] | None
_Query = Annotated[str, Meta(max_length=LONGEST_QUERY)] | int | None


class RankDocument(msgspec.Struct, forbid_unknown_fields=True):
    """A document to rank, for any model."""

    id: Id
    features: dict[str, float | None]


class RankBody(msgspec.Struct, forbid_unknown_fields=True):
    """What any model takes; a `RankDecoder` knows the features of one."""

    documents: list[RankDocument]
    search_id: OptionalSearchId = None
    query_id: OptionalId = None
    query: _Query = None
    definitions: _Hash = None
    client: _Client = None
    interleave: bool = False


@dataclass(frozen=True)
class RankRequest:
    """Documents to rank.

    Attributes:
        search_id: The search's id, as the client gave it.
        query_id: The query's id, for the ranking log.
        query: What was searched for, for the ranking log.
        client: Who searches, for interleaving; the ranking log has a hash.
        interleave: Whether two models may rank it.
        ids: The documents' ids.
        rows: Their features, in the order of the model's.
    """

    search_id: str | None
    query_id: str | int | None
    query: str | int | None
    client: str | None
    interleave: bool
    ids: list[str | int]
    rows: Rows


class RankDecoder:
    """Decodes the requests of one model.

    Args:
        feature_names: The model's features.
        absent: The value of features that may be left out.
        most_documents: The largest number of documents.
        definitions_hash: The hash of the definitions of the model's features, if it is known.
        single: Whether the model compares single-precision numbers.

    Example:
        >>> decode = RankDecoder(["bm25", "age"], {"age": None}, 10)
        >>> decode(b'{"documents": [{"id": "a", "features": {"bm25": 2}}]}').rows
        array([[ 2., nan]], dtype=float32)
    """

    def __init__(
        self,
        feature_names: Sequence[str],
        absent: Mapping[str, float | None],
        most_documents: int,
        definitions_hash: str | None = None,
        *,
        single: bool = True,
    ) -> None:
        self._definitions_hash = definitions_hash
        self._kind = row_type(single=single)
        self._width = len(feature_names)
        self._pack = struct.Struct(f"{self._width}d").pack
        self._may_be_absent = not absent.keys().isdisjoint(feature_names)
        self._absent = [absent.get(name) for name in feature_names]
        self._colons = 2.0 + sum(1 + name.count(":") for name in feature_names)
        if any(":" in name for name in absent):
            self._colons = math.nan  # how many there should be is not known
        fields: list[Any] = [
            (f"f{column}", float | None | UnsetType, UNSET)
            if name in absent
            else (f"f{column}", float | None)
            for column, name in enumerate(feature_names)
        ]
        names = {f"f{column}": name for column, name in enumerate(feature_names)}
        options: dict[str, Any] = {"forbid_unknown_fields": True, "kw_only": True, "gc": False}
        try:
            features = msgspec.defstruct("Features", fields, rename=names, **options)
        except ValueError as error:
            raise DataError(
                f"has a feature whose name no JSON key of the service can have ({error})",
                hint="Rename it, without quotation marks, backslashes and control characters.",
            ) from error
        document = msgspec.defstruct("Document", [("id", Id), ("features", features)], **options)
        documents = Annotated[list[document], Meta(max_length=most_documents)]  # type: ignore[valid-type]
        request = msgspec.defstruct(
            "Request",
            [
                ("documents", documents),
                ("search_id", OptionalSearchId | UnsetType, UNSET),
                ("query_id", OptionalId | UnsetType, UNSET),
                ("query", _Query | UnsetType, UNSET),
                ("definitions", _Hash | UnsetType, UNSET),
                ("client", _Client | UnsetType, UNSET),
                ("interleave", bool | UnsetType, UNSET),
            ],
            **options,
        )
        self._decode = msgspec.json.Decoder(request).decode

    def __call__(self, body: bytes) -> RankRequest:
        """Decode a body; a Refusal if it is not a request of the model."""
        with decoding():
            request: Any = self._decode(body)
        members = msgspec.structs.astuple(request)
        search_id, query_id, query, definitions, client, interleave = (
            None if value is UNSET else value for value in members[1:]
        )
        try:
            require_same_definitions(
                self._definitions_hash, definitions, "the model", "the request"
            )
        except DataError as error:
            raise Refusal(400, str(error)) from None
        documents = request.documents
        ids = [document.id for document in documents]
        if len(set(ids)) != len(ids):
            raise Refusal(400, "two documents have the same id")
        values = [msgspec.structs.astuple(document.features) for document in documents]
        missing = sum(row.count(UNSET) for row in values) if self._may_be_absent else 0
        self._refuse_repeated_keys(body, members, ids, missing)
        if missing:
            values = [
                tuple(
                    default if value is UNSET else value
                    for value, default in zip(row, self._absent, strict=True)
                )
                for row in values
            ]
        with np.errstate(over="ignore"):  # infinities are refused with the feature's name
            rows = self._matrix(values).astype(self._kind).reshape(len(values), self._width)
        return RankRequest(search_id, query_id, query, client, bool(interleave), ids, rows)

    def _refuse_repeated_keys(
        self, body: bytes, members: tuple[Any, ...], ids: list[str | int], missing: int
    ) -> None:
        """Raise a Refusal if an object has a key twice, of which msgspec takes the last.

        Only where there are other colons than those of keys and strings is it parsed once more.
        """
        colons = len(members) - members.count(UNSET) + len(ids) * self._colons - missing
        colons += sum(text.count(":") for text in (*ids, *members) if isinstance(text, str))
        # A quarter of the time of body.count.
        counted = np.count_nonzero(np.frombuffer(body, np.uint8) == ord(":"))
        escaped = b"\\" in body and b"\\u003a" in body.lower()
        if escaped or counted != colons:
            json.loads(body, object_pairs_hook=_read_members, parse_int=str, parse_float=str)

    def _matrix(self, values: list[tuple[float | None, ...]]) -> Doubles:
        pack = self._pack
        try:  # half the time of what follows
            return np.frombuffer(b"".join([pack(*row) for row in values]))
        except struct.error:  # there is a None, which becomes NaN
            count = len(values) * self._width
            return np.fromiter(chain.from_iterable(values), np.float64, count)


def _read_members(members: list[tuple[str, Any]]) -> None:
    names = set()
    for name, _ in members:
        if name in names:
            raise Refusal(400, f"the key {name!r} is there twice")
        names.add(name)
