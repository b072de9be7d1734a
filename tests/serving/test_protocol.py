"""The Open Inference Protocol, called by NVIDIA's client."""

from __future__ import annotations

import hashlib

import httpx2
import numpy as np
import pytest
import tritonclient.http as triton

from podium.serving import ServingSettings
from podium.serving.settings import parse_model
from tests.serving.service import (
    ADMIN,
    NAMES,
    TOKEN,
    bearer,
    linear,
    rows,
    serving,
    trees,
    write_tokens,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("protocol")
    trees().save(folder / "one.podium")
    trees(-1.0).save(folder / "two.podium")
    linear().save(folder / "linear.podium")
    return folder


@pytest.fixture(scope="module")
def address(folder):
    settings = ServingSettings(
        models=(
            parse_model(f"web@1={folder / 'one.podium'}"),
            parse_model(f"web@2={folder / 'two.podium'}"),
            parse_model(str(folder / "linear.podium")),
        ),
        token_file=write_tokens(folder / "tokens"),
        most_documents=500,
    )
    with serving(settings) as address:
        yield address


@pytest.fixture(scope="module")
def client(address):
    client = triton.InferenceServerClient(address.removeprefix("http://"))
    yield client
    client.close()


# The client adds a header to the dictionary that it is given: each call has one of its own.
def reader():
    return bearer(TOKEN)


def deployer():
    return bearer(ADMIN)


def tensor(X, datatype="FP32", binary=True):
    value = triton.InferInput("features", X.shape, datatype)
    value.set_data_from_numpy(X, binary_data=binary)
    return value


@pytest.mark.parametrize("version", ["", "1", "2"])
@pytest.mark.parametrize("binary_in", [True, False])
@pytest.mark.parametrize("binary_out", [None, True, False])
def test_scores_are_those_of_the_ranker(client, version, binary_in, binary_out):
    X = rows()[:100]
    outputs = None
    if binary_out is not None:
        outputs = [triton.InferRequestedOutput("scores", binary_data=binary_out)]
    result = client.infer(
        "web", [tensor(X, binary=binary_in)], version, outputs, request_id="r1", headers=reader()
    )
    expected = trees(1.0 if version == "1" else -1.0)._predict(X)
    np.testing.assert_allclose(result.as_numpy("scores"), expected, atol=1e-6)
    answer = result.get_response()
    assert (answer["id"], answer["model_version"]) == ("r1", version or "2")


def test_double_precision_is_rounded_as_in_training(client):
    X = rows()[:20].astype(np.float64) + 1e-12
    result = client.infer("web", [tensor(X, "FP64")], headers=reader())
    expected = trees(-1.0)._predict(X.astype(np.float32))
    np.testing.assert_allclose(result.as_numpy("scores"), expected, atol=1e-6)


def test_nan_is_a_missing_value_and_infinity_is_refused(client):
    X = rows()[:20].copy()
    X[3, 1] = np.nan
    result = client.infer("web", [tensor(X)], headers=reader())
    np.testing.assert_allclose(result.as_numpy("scores"), trees(-1.0)._predict(X), atol=1e-6)
    with pytest.raises(triton.InferenceServerException, match="'age' of document 3 is missing"):
        client.infer("linear", [tensor(X)], headers=reader())
    X[4, 0] = np.inf
    with pytest.raises(triton.InferenceServerException, match="'bm25' of document 4 is infinite"):
        client.infer("web", [tensor(X)], headers=reader())


def test_health_and_metadata(client, folder):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("web", "2", headers=reader())
    assert not client.is_model_ready("web", "3", headers=reader())
    server = client.get_server_metadata(headers=reader())
    assert server["name"] == "podium"
    assert server["extensions"] == ["binary_tensor_data", "model_repository"]
    model = client.get_model_metadata("web", "1", headers=reader())
    assert model["versions"] == ["1", "2"]
    assert model["inputs"] == [{"name": "features", "datatype": "FP32", "shape": [-1, 3]}]
    assert model["outputs"] == [{"name": "scores", "datatype": "FP64", "shape": [-1]}]
    assert model["parameters"]["feature_names"] == list(NAMES)
    content = (folder / "one.podium").read_bytes()
    assert model["parameters"]["sha256"] == hashlib.sha256(content).hexdigest()


def test_models_are_loaded_and_unloaded(client):
    def states():
        return {
            (model["name"], model["version"]): model["state"]
            for model in client.get_model_repository_index(headers=reader())
        }

    ready = {("web", "1"): "READY", ("web", "2"): "READY", ("linear", "1"): "READY"}
    assert states() == ready
    client.unload_model("linear", headers=deployer())
    assert states() == ready | {("linear", "1"): "UNAVAILABLE"}
    with pytest.raises(triton.InferenceServerException, match="'linear' is not loaded"):
        client.infer("linear", [tensor(rows()[:2])], headers=reader())
    client.load_model("linear", headers=deployer())
    assert states() == ready
    result = client.infer("linear", [tensor(rows()[:2])], headers=reader())
    np.testing.assert_allclose(result.as_numpy("scores"), linear()._predict(rows()[:2]))


def test_a_load_takes_no_files_from_the_client(client):
    with pytest.raises(triton.InferenceServerException, match="command line only"):
        client.load_model("web", config="{}", headers=deployer())
    with pytest.raises(triton.InferenceServerException, match="no model 'other'"):
        client.load_model("other", headers=deployer())


def infer_body(**changes):
    tensor = {"name": "features", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}
    return {"inputs": [tensor | changes]}


def test_json_tensors_are_flat_or_nested(address):
    url = f"{address}/v2/models/web/infer"
    expected = trees(-1.0)._predict(np.array([[1, np.nan, 3]], np.float32)).tolist()
    for data in ([1, None, 3], [[1, None, 3]]):
        answer = httpx2.post(url, json=infer_body(data=data), headers=reader(), timeout=60).json()
        assert answer["outputs"][0]["shape"] == [1]
        assert answer["outputs"][0]["data"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (infer_body(shape=[1, 4]), "not [documents, 3]"),
        (infer_body(shape=[3]), "not [documents, 3]"),
        (infer_body(shape=[501, 3]), "501 documents are more than 500"),
        (infer_body(shape=[2, 3]), "3 values do not have the shape [2, 3]"),
        (infer_body(shape=[-1, 3]), "Expected `int` >= 0"),
        (infer_body(data=[[1, 2], [3]]), "do not have the shape [1, 3]"),
        (infer_body(datatype="INT8"), "'INT8' is not FP32 or FP64"),
        (infer_body(name="x"), "one input, 'features'"),
        (infer_body(data=["1", 2, 3]), "got `str`"),
        (infer_body(parameters={"binary_data_size": 12}), "both data and binary data"),
        (infer_body(parameters={"shared_memory_region": "a"}), "shared memory"),
        (infer_body() | {"outputs": [{"name": "other"}]}, "one output, 'scores'"),
        ({"inputs": []}, "one input, 'features'"),
    ],
)
def test_invalid_tensors_are_refused_with_the_reason(address, body, words):
    answer = httpx2.post(f"{address}/v2/models/web/infer", json=body, headers=reader(), timeout=60)
    assert answer.status_code == 400
    assert words in answer.json()["error"]


@pytest.mark.parametrize("length", ["x", "-1", "1000000", "99999999999999", "²"])
def test_an_invalid_header_length_is_refused(address, length):
    answer = httpx2.post(
        f"{address}/v2/models/web/infer", json=infer_body(),
        headers=reader() | {"Inference-Header-Content-Length": length.encode()}, timeout=60,
    )  # fmt: skip
    assert answer.status_code == 400


def test_binary_data_must_have_the_size_of_the_shape(address):
    header = (
        b'{"inputs": [{"name": "features", "shape": [1, 3], "datatype": "FP32", '
        b'"parameters": {"binary_data_size": 12}}]}'
    )
    headers = reader() | {"Inference-Header-Content-Length": str(len(header))}
    statuses = [
        httpx2.post(
            f"{address}/v2/models/web/infer",
            content=header + bytes(size),
            headers=headers,
            timeout=60,
        ).status_code
        for size in (11, 12, 13)
    ]
    assert statuses == [400, 200, 400]
