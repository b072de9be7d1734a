"""Tensors of the Open Inference Protocol, as JSON or with Triton's binary extension.

A body is a JSON object. With the header ``Inference-Header-Content-Length`` the object has that
many bytes, and the bytes of the tensors whose ``binary_data_size`` is stated follow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from podium.kernels import Doubles
from podium.serving.refusal import Refusal, decoding
from podium.serving.rows import Rows, row_type
from podium.serving.search_ids import LONGEST_QUERY, OptionalId, OptionalSearchId

INPUT, OUTPUT = "features", "scores"
_TYPES: dict[str, np.dtype[Any]] = {"FP32": np.dtype("<f4"), "FP64": np.dtype("<f8")}
_Parameters = dict[str, Any] | None


class _Input(msgspec.Struct):
    name: str
    shape: Annotated[list[Annotated[int, Meta(ge=0, le=1 << 31)]], Meta(max_length=8)]
    datatype: str
    data: msgspec.Raw = msgspec.Raw(b"null")
    parameters: _Parameters = None


class _Output(msgspec.Struct):
    name: str
    parameters: _Parameters = None


class _Request(msgspec.Struct):
    inputs: Annotated[list[_Input], Meta(max_length=16)]
    outputs: Annotated[list[_Output], Meta(max_length=16)] | None = None
    id: Annotated[str, Meta(max_length=1024)] | None = None
    parameters: _Parameters = None


class _Names(msgspec.Struct):
    search_id: OptionalSearchId = None
    query_id: OptionalId = None
    query: Annotated[str, Meta(max_length=LONGEST_QUERY)] | None = None


_decode = msgspec.json.Decoder(_Request).decode
_decode_flat = msgspec.json.Decoder(list[float | None]).decode
_decode_rows = msgspec.json.Decoder(list[list[float | None]]).decode


@dataclass(frozen=True)
class InferRequest:
    """Rows to score.

    Attributes:
        id: The client's name of the request, which the answer repeats.
        search_id: The parameter ``search_id``, as the client gave it.
        query_id: The parameter ``query_id``, for the ranking log.
        query: The parameter ``query``, for the ranking log.
        rows: One row per document.
        binary: Whether the client wants the scores as bytes.
    """

    id: str | None
    search_id: str | None
    query_id: str | int | None
    query: str | None
    rows: Rows
    binary: bool


def parse_infer(
    body: bytes, header_length: str | None, width: int, most_documents: int, *, single: bool = True
) -> InferRequest:
    """Parse a request; a Refusal if it is not one for a model of so many features.

    Args:
        body: The body of the request.
        header_length: The header that says how long the JSON object is, if bytes follow it.
        width: The number of features.
        most_documents: The largest number of documents.
        single: Whether the model compares single-precision numbers.
    """
    length = len(body)
    if header_length is not None:
        if not header_length.isascii() or not header_length.isdigit() or len(header_length) > 9:
            raise Refusal(400, "Inference-Header-Content-Length is not a number")
        length = int(header_length)
        if length > len(body):
            raise Refusal(400, "Inference-Header-Content-Length is larger than the body")
    with decoding():
        request = _decode(body[:length])
        if len(request.inputs) != 1 or request.inputs[0].name != INPUT:
            raise Refusal(400, f"the model has one input, {INPUT!r}")
        values = _rows(request.inputs[0], body[length:], width, most_documents)
    with np.errstate(over="ignore"):  # infinities are refused with the feature's name
        rows = values.astype(row_type(single=single))
    parameters = request.parameters or {}
    binary = parameters.get("binary_data_output") is True
    if request.outputs:
        if [output.name for output in request.outputs] != [OUTPUT]:
            raise Refusal(400, f"the model has one output, {OUTPUT!r}")
        asked = request.outputs[0].parameters or {}
        if "classification" in asked or "shared_memory_region" in asked:
            raise Refusal(400, "classification and shared memory are not supported")
        binary = asked.get("binary_data", binary) is True
    with decoding():
        names = msgspec.convert(parameters, _Names)
    return InferRequest(request.id, names.search_id, names.query_id, names.query, rows, binary)


def _rows(tensor: _Input, binary: bytes, width: int, most_documents: int) -> NDArray[Any]:
    kind = _TYPES.get(tensor.datatype)
    if kind is None:
        raise Refusal(400, f"datatype {tensor.datatype!r} is not FP32 or FP64")
    if len(tensor.shape) != 2 or tensor.shape[1] != width:
        raise Refusal(400, f"the shape of {INPUT!r} is {tensor.shape}, not [documents, {width}]")
    documents = tensor.shape[0]
    if documents > most_documents:
        raise Refusal(400, f"{documents} documents are more than {most_documents}")
    parameters = tensor.parameters or {}
    if "shared_memory_region" in parameters:
        raise Refusal(400, "shared memory is not supported")
    has_data = bytes(tensor.data) != b"null"
    size = parameters.get("binary_data_size")
    if size is not None:
        if has_data:
            raise Refusal(400, "a tensor has both data and binary data")
        if (
            type(size) is not int
            or size != len(binary)
            or size != documents * width * kind.itemsize
        ):
            raise Refusal(400, "the binary data do not have the size of the shape")
        values = np.frombuffer(binary, kind)
    else:
        if binary:
            raise Refusal(400, "bytes follow the JSON object")
        if not has_data:
            raise Refusal(400, "a tensor has no data")
        numbers = _numbers(tensor.data, documents, width)
        if len(numbers) != documents * width:
            raise Refusal(400, f"{len(numbers)} values do not have the shape {tensor.shape}")
        values = np.array(numbers, np.float64)  # None becomes NaN
    return values.reshape(documents, width)


def _numbers(data: msgspec.Raw, documents: int, width: int) -> list[float | None]:
    """Return the values of a tensor that is written flat or as a list per document."""
    if not bytes(memoryview(data)[1:64]).lstrip().startswith(b"["):
        return _decode_flat(data)
    rows = _decode_rows(data)
    if len(rows) != documents or any(len(row) != width for row in rows):
        raise Refusal(400, f"the rows of the data do not have the shape [{documents}, {width}]")
    return [value for row in rows for value in row]


def infer_answer(
    name: str, version: int, digest: str, search_id: str, request: InferRequest, scores: Doubles
) -> tuple[bytes, int | None]:
    """Encode an answer; also return the length of its JSON object if bytes follow it."""
    output: dict[str, Any] = {"name": OUTPUT, "datatype": "FP64", "shape": [len(scores)]}
    if request.binary:
        data = scores.astype("<f8").tobytes()
        output["parameters"] = {"binary_data_size": len(data)}
    else:
        data = b""
        output["data"] = scores.tolist()
    answer = {
        "model_name": name,
        "model_version": str(version),
        "parameters": {"sha256": digest, "search_id": search_id},
        "outputs": [output],
    }
    if request.id is not None:
        answer["id"] = request.id
    header = msgspec.json.encode(answer)
    return header + data, len(header) if request.binary else None
