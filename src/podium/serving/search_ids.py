"""The ids of searches and queries: given by the client, or made."""

from __future__ import annotations

import re
import secrets
from typing import Annotated

from fastapi import Request
from msgspec import Meta

from podium.serving.refusal import Refusal

LONGEST_QUERY = 10_000
LONGEST_ID = 1024

Id = Annotated[str, Meta(max_length=LONGEST_ID)] | int
OptionalId = Id | None
SEARCH_ID_PATTERN = "^[!-~]{1,128}$"
"""What a header can carry, too."""
OptionalSearchId = Annotated[str, Meta(pattern=SEARCH_ID_PATTERN)] | None
HEADER = "X-Search-Id"


def search_id_of(request: Request, search_id: str | None) -> str:
    """Return the id of a search: that of its body, else that of its header, else a new one."""
    if search_id is not None:
        return search_id
    header = request.headers.get(HEADER)
    if header is None:
        return secrets.token_hex(16)
    if not re.fullmatch(SEARCH_ID_PATTERN, header):
        raise Refusal(400, f"{HEADER} is not 1 to 128 visible ASCII characters")
    return header
