"""A service that is sent to other machines needs none of the files that it was made from."""

from __future__ import annotations

import httpx2
import numpy as np
import pytest

from podium.errors import DataError
from podium.serving import ServingSettings
from podium.serving.replicas import pack_service, unpack_service
from podium.serving.settings import parse_model
from tests.serving.service import ADMIN, bearer, rank_body, rows, serving, trees, write_tokens


def test_a_bundle_serves_without_its_files(tmp_path):
    model, tokens = tmp_path / "m.podium", tmp_path / "tokens"
    trees().save(model)
    settings = ServingSettings(
        models=(parse_model(str(model)),), token_file=write_tokens(tokens), most_documents=7
    )
    bundle = pack_service(settings)
    model.unlink()
    tokens.unlink()
    folder = tmp_path / "other-machine"
    folder.mkdir()
    with serving(unpack_service(bundle, folder)) as address:
        body = rank_body(rows()[:7])
        answer = httpx2.post(f"{address}/rank", json=body, headers=bearer(ADMIN), timeout=60).json()
        assert httpx2.post(f"{address}/rank", json=body, timeout=60).status_code == 401
        too_many = httpx2.post(
            f"{address}/rank", json=rank_body(rows()[:8]), headers=bearer(ADMIN), timeout=60
        )
        load = httpx2.post(
            f"{address}/v2/repository/models/m/load", headers=bearer(ADMIN), timeout=60
        )
    expected = np.sort(-trees()._predict(rows()[:7]))
    np.testing.assert_allclose([-each["score"] for each in answer["ranking"]], expected, atol=1e-6)
    assert too_many.status_code == 400
    assert (load.status_code, load.json()["error"]) == (
        403, "models are changed by deploying the service again",
    )  # fmt: skip


def test_a_model_that_cannot_be_served_is_not_packed(tmp_path):
    (tmp_path / "m.podium").write_bytes(b"PK, but not a ranker")
    with pytest.raises(DataError, match=r"m\.podium: is not a saved ranker"):
        pack_service(ServingSettings(models=(parse_model(str(tmp_path / "m.podium")),)))
