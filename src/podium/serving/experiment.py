"""Searches that two models rank: who takes part, and the draft of both rankings."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from podium.data.files import read_bounded
from podium.errors import DataError
from podium.kernels import Doubles
from podium.online.drafts import Draft, interleave, share_of
from podium.serving.model import ServedModel
from podium.serving.rows import Rows
from podium.serving.scoring import Pair

_KEY_BYTES = 32
_LONGEST_KEY = 4096


class InterleaveSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Two models of which some searches show a draft.

    Attributes:
        old: The model of before.
        new: The model that is tried; one of both is the model of all other searches.
        share: The share of searches, or of clients that are known, that take part.
        method: How the two rankings become one.
        key_file: A file with the key of who takes part; by default a random one of this service.
    """

    old: str
    new: str
    share: Annotated[float, Meta(gt=0, le=1)]
    method: Literal["team-draft", "probabilistic", "balanced"] = "team-draft"
    key_file: str | None = None


@dataclass(frozen=True)
class InterleavedPage:
    """What a search showed of two rankings, for the ranking log.

    Attributes:
        experiment: The name of the experiment: another one if models, share, method or key change.
        settings: Its settings.
        shown: The ids of the page, in their order.
        credits: What a click on each says.
    """

    experiment: str
    settings: InterleaveSettings
    shown: list[str | int]
    credits: list[float]


class Experiment:
    """Decides which searches take part, the same in all processes of a service.

    Args:
        settings: The two models.
        folder: What the processes share.
    """

    def __init__(self, settings: InterleaveSettings, folder: Path) -> None:
        self.settings = settings
        if settings.key_file is None:
            key = _shared_key(folder / "interleave.key")
        else:
            key = read_bounded(settings.key_file, _LONGEST_KEY).strip()
            if not key:
                raise DataError(
                    "has no key", path=settings.key_file, hint="Write some random letters to it."
                )
        self._key = hashlib.blake2b(key).digest()
        # However slow a model is that is tried, it has one thread, and all else goes on beside it.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="interleaving")

    def close(self) -> None:
        """Score no more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def score(
        self, model: ServedModel, rows: Rows, pairs: Sequence[Pair] = (), *, until: float
    ) -> Doubles:
        """Score documents by the model that is tried.

        Args:
            model: The model.
            rows: The documents' features.
            pairs: Their texts, if it reads them.
            until: When a TimeoutError ends this, by the clock of the running loop.
        """
        async with asyncio.timeout_at(until):
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, model.score, rows, pairs)

    def takes_part(self, search_id: str, client: str | None) -> bool:
        """Whether a search is interleaved: with a known client all of its searches, or none."""
        who = f"search {search_id}" if client is None else f"client {client}"
        return share_of(self._key, who) < self.settings.share

    def name(self, old_digest: str, new_digest: str) -> str:
        """Return the name of the experiment with these two models."""
        settings = self.settings
        text = "\n".join((
            settings.method, settings.old, settings.new, old_digest, new_digest,
            repr(settings.share),
        ))  # fmt: skip
        return f"{settings.method}-{self.hashed(text)[:12]}"

    def hashed(self, text: str) -> str:
        """Return a hash that only who has the key can compute, such as that of a client."""
        return hashlib.blake2b(text.encode(), key=self._key, digest_size=8).hexdigest()

    def partner(self, model: str) -> str | None:
        """Return the name of the model that one is interleaved with; None without one."""
        pair = {self.settings.old: self.settings.new, self.settings.new: self.settings.old}
        return pair.get(model)

    def page(
        self,
        search_id: str,
        rankings: Mapping[str, tuple[str, Sequence[int]]],
        ids: Sequence[str | int],
        page: slice,
    ) -> tuple[list[int], InterleavedPage]:
        """Draft a search's page.

        Args:
            search_id: The search.
            rankings: The digest of each model and how it orders the rows, by the model's name.
            ids: The id of each row.
            page: Which places are shown.

        Returns:
            The rows up to the end of the page, and what the page says about both models.
        """
        (old_digest, old), (new_digest, new) = (
            rankings[name] for name in (self.settings.old, self.settings.new)
        )
        name = self.name(old_digest, new_digest)
        draft = self.draft(name, search_id, old, new, page.stop)
        shown = [ids[row] for row in draft.documents[page]]
        return draft.documents, InterleavedPage(name, self.settings, shown, draft.credits[page])

    def draft(
        self, name: str, search_id: str, old: Sequence[int], new: Sequence[int], size: int
    ) -> Draft[int]:
        """Draft two rankings; the same for all pages of a search."""
        seed = int(self.hashed(f"{name}\n{search_id}"), 16)
        return interleave(old, new, size, method=self.settings.method, random_state=seed)


def _shared_key(path: Path) -> bytes:
    """Return a random key, that of the first process that asks."""
    own = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secrets.token_bytes(_KEY_BYTES))
    with suppress(FileExistsError):
        os.link(own, path)  # whole at once: no other process reads a part of it
    own.unlink()
    return path.read_bytes()
