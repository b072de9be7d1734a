"""The exported model beside its export, to explain a difference by its trees."""

from __future__ import annotations

from io import BytesIO

from podium.errors import DataError
from podium.rankers.storage import Archive, archive_bytes, read_archive
from podium.scorers.models import FittedModel


def reference_bytes(model: FittedModel) -> bytes:
    """Encode a model."""
    values, arrays = model.content()
    metadata = {"feature_names": list(model.feature_names), **values}
    return archive_bytes(Archive(type(model).__name__, metadata, arrays))


def read_reference(content: bytes) -> FittedModel:
    """Decode a model that ``reference_bytes`` encoded; a DataError for anything else."""
    archive = read_archive(BytesIO(content))
    try:
        names = tuple(map(str, archive.metadata["feature_names"]))
        kind = FittedModel.KINDS[archive.kind]
        return kind.from_content(names, archive.metadata, archive.arrays)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"is not the model of an export ({error!r})", hint="Export it again."
        ) from error
