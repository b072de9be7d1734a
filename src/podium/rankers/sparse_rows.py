"""Rows with sparse features, for linear rankers: the matrix is never made dense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from podium.data import Dataset
from podium.data.columns import numbered_names
from podium.data.grouping import group_rows, group_sizes, ungrouped_rows
from podium.data.numbers import as_numbers, infinite_feature
from podium.errors import DataError
from podium.rankers.linear_kernels import missing_feature


class SparseMatrix(Protocol):
    """A sparse matrix or array of SciPy, of any format."""

    def tocsr(self) -> Any:
        """Return it in compressed rows."""


def is_sparse(X: object) -> bool:
    """Whether it is a sparse matrix or array of SciPy, which is not imported for that."""
    return hasattr(X, "tocsr") and hasattr(X, "nnz")


def sparse_matrix(X: Any) -> Any:
    """Return a sparse matrix in rows, with the values that a dense one would have.

    Features have single precision; they are stored in double precision, as sums need them.
    """
    from scipy import sparse

    if X.ndim != 2:
        raise DataError("features are not two-dimensional", hint="Give one row per document.")
    if X.dtype.kind not in "fiub":
        raise DataError(f"features are not numbers ({X.dtype})", hint="Convert them first.")
    matrix = sparse.csr_array(X)
    values = matrix.data.astype(np.float32)
    if np.isinf(values).any():
        raise infinite_feature()
    if np.isnan(values).any():
        raise missing_feature()
    return sparse.csr_array(
        (values.astype(np.float64), matrix.indices, matrix.indptr), shape=matrix.shape
    )


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Queries whose features are a sparse matrix.

    Attributes:
        queries: Labels and queries of the rows, without features.
        features: A ``scipy.sparse.csr_array`` with the same rows.
    """

    queries: Dataset
    features: Any

    @classmethod
    def from_arrays(cls, X: Any, y: Any, *, qid: Any, group: Any) -> SparseRows:
        """Create them from rows in any order."""
        matrix = sparse_matrix(X)
        if (qid is None) == (group is None):
            raise ungrouped_rows(qid)
        labels = as_numbers(y, np.float32, "labels", dimensions=1)
        if not np.isfinite(labels).all():
            raise DataError("a label is NaN or infinite", hint="Give finite labels.")
        grouping = group_rows(qid) if group is None else group_sizes(group, len(labels), None)
        if matrix.shape[0] != len(labels):
            raise DataError(
                f"{matrix.shape[0]} rows of features for {len(labels)} labels",
                hint="Give one for each row.",
            )
        queries = Dataset.grouped(np.empty((len(labels), 0), np.float32), labels, grouping)
        return cls(queries, matrix if grouping.order is None else matrix[grouping.order])

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The columns' numbers from 1."""
        return numbered_names(self.features.shape[1])
