"""Users who click as click models say, on judged data and any logging policy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from podium.clicks.importing import import_clicks
from podium.clicks.table import ClickLog
from podium.data import Dataset
from podium.data.files import writing
from podium.data.seeds import generator
from podium.errors import ArgumentError
from podium.kernels import Doubles, Ints

UserName: TypeAlias = Literal["pbm", "cascade", "dbn"]
"""Users who look at each rank by chance (``pbm``), who stop at the first click (``cascade``), or
who go on until they are satisfied (``dbn``)."""

_BEGIN = 1_700_000_000_000
_ROWS = 4_000_000


@dataclass(frozen=True)
class SimulatedUser:
    """How simulated users click.

    Attributes:
        model: What they are like.
        eta: Rank r is examined with the probability r to the power of -eta (``pbm``).
        noise: How likely a document of the lowest label is clicked if it is examined.
        trust: How much likelier users click what is high up, whatever it is (``pbm``): at rank r a
            share of trust / r of what they would not click otherwise.
        patience: How likely users go on after a document that does not satisfy them (``dbn``).

    Example:
        >>> SimulatedUser("pbm", eta=2).examination(3).round(2).tolist()
        [1.0, 0.25, 0.11]
    """

    model: UserName = "pbm"
    eta: float = 1.0
    noise: float = 0.1
    trust: float = 0.0
    patience: float = 0.9

    def __post_init__(self) -> None:
        if self.model not in get_args(UserName):
            raise ArgumentError(
                f"there is no user {self.model!r}",
                hint=f"There are {', '.join(get_args(UserName))}.",
            )
        for name in ("noise", "trust", "patience"):
            if not 0 <= getattr(self, name) <= 1:
                raise ArgumentError(f"{name} is {getattr(self, name)}", hint="Give 0 to 1.")

    def examination(self, depth: int) -> Doubles:
        """Return how likely each rank is examined (``pbm``)."""
        return np.arange(1.0, depth + 1) ** -self.eta

    def attractiveness(self, labels: ArrayLike, highest: float) -> Doubles:
        """Return how likely documents are clicked if they are examined."""
        gains = 2.0 ** np.asarray(labels, np.float64) - 1.0
        most = 2.0**highest - 1.0
        share = gains / most if most > 0 else np.zeros_like(gains)
        return np.asarray(self.noise + (1.0 - self.noise) * share)

    def clicks(
        self, attractive: Doubles, satisfying: Doubles, random: np.random.Generator
    ) -> NDArray[np.bool_]:
        """Draw clicks on lists, one row per search; NaN is below the end of a list."""
        depth = attractive.shape[1]
        draws = random.random(attractive.shape)
        if self.model == "pbm":
            ranks = np.arange(1.0, depth + 1)
            clicked = attractive + (1.0 - attractive) * self.trust / ranks
            return np.asarray(draws < clicked * self.examination(depth))
        clicks = np.zeros(attractive.shape, bool)
        active = np.ones(len(attractive), bool)
        for rank in range(depth):
            clicks[:, rank] = active & (draws[:, rank] < attractive[:, rank])
            if self.model == "cascade":
                active &= ~clicks[:, rank]
            else:
                satisfied = clicks[:, rank] & (random.random(len(active)) < satisfying[:, rank])
                active &= ~satisfied & (random.random(len(active)) < self.patience)
        return clicks


def simulate_clicks(
    data: Dataset,
    folder: str | os.PathLike[str],
    *,
    user: SimulatedUser | UserName = "pbm",
    policy: ArrayLike | str | None = None,
    searches: int = 100,
    depth: int = 10,
    shuffled: float = 0.0,
    random_state: int = 0,
) -> ClickLog:
    """Simulate searches for the queries of judged data, and what users click.

    Each search shows the first documents by the policy, and random ones in a random order for the
    share ``shuffled`` of all searches. Documents without ids are called by their number.

    Args:
        data: Judged data.
        folder: Where the log is written: a folder that is empty or does not exist.
        user: The users.
        policy: Ranks documents: a score for each row, a feature's name, or None for a random order
            in each search.
        searches: Searches for each query.
        depth: How many documents a search shows.
        shuffled: The share of searches in a random order.
        random_state: Draws all of it.

    Example:
        >>> import tempfile
        >>> data = Dataset.from_arrays([[1], [2], [3]], [0, 1, 2], qid=["q"] * 3)
        >>> log = simulate_clicks(data, tempfile.mkdtemp() + "/log", policy="1", searches=10)
        >>> log.searches, log.rows
        (10, 30)
    """
    users = user if isinstance(user, SimulatedUser) else SimulatedUser(user)
    if searches < 1 or depth < 1 or not 0 <= shuffled <= 1:
        raise ArgumentError(
            "searches, depth or shuffled is out of range", hint="Give 1 or more, and 0 to 1."
        )
    scores = _scores(data, policy)
    table = pa.schema(
        [("search_id", pa.string()), ("query", pa.string()), ("document_id", pa.string()),
         ("rank", pa.int64()), ("clicked", pa.int8()), ("time", pa.int64()),
         ("policy", pa.string())]
    )  # fmt: skip
    import tempfile

    with tempfile.TemporaryDirectory(prefix="podium-clicks-") as temporary:
        path = f"{temporary}/rows.parquet"
        with writing(path), pq.ParquetWriter(path, table) as writer:
            for rows in _rows(data, scores, users, searches, depth, shuffled, random_state):
                writer.write_table(pa.table(rows, table))
        return import_clicks(path, folder)


def _scores(data: Dataset, policy: ArrayLike | str | None) -> Doubles | None:
    if policy is None:
        return None
    if isinstance(policy, str):
        values = data.select_features([policy]).features[:, 0]
        return np.nan_to_num(values.astype(np.float64), nan=-np.inf)
    scores = np.asarray(policy, np.float64)
    if scores.shape != (data.rows,):
        raise ArgumentError(
            f"the policy has {scores.shape} scores for {data.rows} rows", hint="Give one per row."
        )
    return scores


def _rows(
    data: Dataset,
    scores: Doubles | None,
    user: SimulatedUser,
    searches: int,
    depth: int,
    shuffled: float,
    random_state: int,
) -> Iterator[dict[str, pa.Array]]:
    highest = float(data.labels.max())
    names = data.query_ids.to_pylist()
    for query in range(len(data)):
        begin, end = int(data.offsets[query]), int(data.offsets[query + 1])
        size, random = end - begin, generator(random_state, query)
        shown = min(depth, size)
        attractive = user.attractiveness(data.labels[begin:end], highest)
        for first in range(0, searches, max(1, _ROWS // size)):
            count = min(searches - first, max(1, _ROWS // size))
            keys = random.random((count, size))
            if scores is not None:
                by_policy = random.random(count) >= shuffled
                # A random number decides between equal scores, and stays below any difference.
                order = np.lexsort((random.random(size), -scores[begin:end]))
                rank_of = np.empty(size)
                rank_of[order] = np.arange(size)
                keys[by_policy] = rank_of
            lists = np.argsort(keys, axis=1)[:, :shown]
            likely = attractive[lists]
            clicked = user.clicks(likely, likely, random)
            search = np.arange(first, first + count)
            yield {
                "search_id": pa.array(np.repeat([f"{names[query]}/{n}" for n in search], shown)),
                "query": pa.array([names[query]] * (count * shown)),
                "document_id": _documents(data, begin, lists),
                "rank": pa.array(np.tile(np.arange(1, shown + 1), count)),
                "clicked": pa.array(clicked.ravel().astype(np.int8)),
                "time": pa.array(np.repeat(_BEGIN + 1000 * search, shown)),
                "policy": pa.array(["simulated"] * (count * shown)),
            }


def _documents(data: Dataset, begin: int, lists: Ints) -> pa.Array:
    if data.document_ids is None:
        return pa.array(lists.ravel().astype(str))
    return data.document_ids.take(pa.array(begin + lists.ravel())).cast(pa.string())
