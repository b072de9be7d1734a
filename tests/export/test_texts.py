"""Rankers of texts as ONNX graphs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")
pytest.importorskip("onnxruntime")
import torch
from tokenizers import Tokenizer

from podium.errors import ArgumentError, DataError
from podium.export import export_ranker, verify_export
from podium.export.folder import ExportFolder
from podium.export.texts import TextGraph, encoder_graph, open_graph
from podium.rankers import TextRanker
from tests.cli.run_podium import fail, podium
from tests.rankers.tiny_bert import save_tiny_bert, word_task

MANIFEST: dict[str, Any] = {
    "format": 1, "target": "onnx", "engine_version": "1.17", "model_name": "podium",
    "features": [], "ranker": {}, "tolerance": 1e-4, "limits": [],
    "texts": {"architecture": "cross-encoder", "max_length": 40, "scale": 1.0},
    "files": dict.fromkeys(["model.onnx", "golden.jsonl", "tokenizer.json"], ""),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("texts")
    save_tiny_bert(path / "bert")
    return path


@pytest.fixture(scope="module", params=["cross-encoder", "bi-encoder"])
def ranker(folder: Path, request: pytest.FixtureRequest) -> Any:
    pairs, labels, ids = word_task(4, 5)
    fitted = TextRanker(
        folder / "bert", architecture=request.param, max_length=40, epochs=1, learning_rate=1e-3
    )
    return fitted.fit(pairs, labels, qid=ids)


def graph_scores(export: ExportFolder, pairs: list[tuple[str, str]]) -> Any:
    """The scores of the graph alone, which its tokenizer's file gives its tokens."""
    assert export.manifest.texts is not None
    return TextGraph.open(export.target_files(), export.manifest.texts).predict(pairs)


def test_texts_are_embedded_together(ranker: TextRanker, tmp_path: Path) -> None:
    export_ranker(ranker, "onnx", tmp_path)
    graph = open_graph(tmp_path)
    texts = ["w1", "w2 w3 w4 " * 30, "", "w5 w6"] * 12
    if ranker.architecture == "cross-encoder":
        with pytest.raises(ArgumentError, match="embeds no texts"):
            graph.embed(texts)
        return
    vectors = graph.embed(texts).astype(np.float64)
    expected = ranker.predict([("w1", text) for text in texts])
    np.testing.assert_allclose(graph.texts.scale * vectors @ vectors[0], expected, atol=1e-4)
    assert len(graph.embed([])) == 0


def test_a_checkpoint_embeds_texts(folder: Path) -> None:
    vectors = encoder_graph(folder / "bert", 40).embed(["w1", "w2 w3"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_the_graph_scores_as_the_ranker_does(ranker: TextRanker, tmp_path: Path) -> None:
    export = export_ranker(ranker, "onnx", tmp_path)
    pairs, _, _ = word_task(3, 12, seed=5)
    pairs += [("", ""), ("w1", "w2 " * 900), ("א w3", "\u202ew1")]
    scores, expected = graph_scores(export, pairs), ranker.predict(pairs)
    assert np.abs(scores - expected).max() <= 1e-4 * max(1.0, np.abs(expected).max())
    for query in range(3):
        rows = slice(12 * query, 12 * query + 12)
        tops = [np.argsort(-each[rows], kind="stable")[:10].tolist() for each in (scores, expected)]
        assert tops[0] == tops[1]
    verification = verify_export(tmp_path)
    assert (verification.holds, verification.rows) == (True, 72)
    alone = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert len(alone.encode("w1", "w2 " * 900).ids) == 40  # the graph takes no more
    assert len(alone.encode_batch(["w1", "w1 w2"])[0].ids) == 3  # and none is padded
    # It is the same when it is trained on: attention is only replaced in the graph.
    assert ranker.encoder_.config._attn_implementation != "eager"


def test_commands_find_what_was_changed(ranker: TextRanker, tmp_path: Path) -> None:
    saved, out = tmp_path / "saved", tmp_path / "saved.onnx"
    ranker.save(saved)
    done = podium("export", saved, "--to", "onnx")
    assert done.returncode == 0, done.stderr
    done = podium("verify", out)
    assert done.returncode == 0, done.stderr
    assert b"0 of 72 golden rows off" in done.stdout
    golden = [json.loads(line) for line in (out / "golden.jsonl").read_text().splitlines()]
    golden[3]["score"] += 100.0  # the best of its query
    (out / "golden.jsonl").write_text("".join(json.dumps(each) + "\n" for each in golden))
    done = podium("verify", out)
    assert done.returncode == 1
    assert b"1 of 72 golden rows off" in done.stdout
    assert b"golden.jsonl is not as it was written" in done.stdout
    assert b"the graph scores otherwise: row 3" in done.stdout
    assert b"the first 10 documents are others: 10 rows" in done.stdout
    assert "solr cannot score texts. Give --to onnx." in fail("export", saved, "--to", "solr")
    assert "is not put into a running engine" in fail("verify", out, "http://localhost:1")
    assert "--queries is not for text rankers" in fail("verify", out, "--queries", "none")


def test_a_graph_that_cannot_be_run_is_refused(folder: Path, tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    value = helper.make_tensor_value_info("pixels", TensorProto.INT64, [1, None])
    node = helper.make_node("Identity", ["pixels"], ["scores"])
    output = helper.make_tensor_value_info("scores", TensorProto.INT64, [1, None])
    graph = helper.make_model(
        helper.make_graph([node], "g", [value], [output]), ir_version=8,
        opset_imports=[helper.make_opsetid("", 17)],
    )  # fmt: skip
    (tmp_path / "model.onnx").write_bytes(graph.SerializeToString())
    (tmp_path / "tokenizer.json").write_bytes((folder / "bert/tokenizer.json").read_bytes())
    (tmp_path / "golden.jsonl").write_text('{"query": "w1", "document": "w2", "score": 1}\n')
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST))
    assert "cannot score the golden pairs ('pixels')" in fail("verify", tmp_path)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
def test_masks_of_other_shapes(tmp_path: Path) -> None:
    """DeBERTa takes the tokenizer's mask only; its positions are relative."""
    from transformers import DebertaV2Config, DebertaV2Model

    save_tiny_bert(tmp_path)
    config = DebertaV2Config(
        vocab_size=70, hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=40, relative_attention=True,
        position_biased_input=False, pos_att_type=["p2c", "c2p"],
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(7)
        DebertaV2Model(config).save_pretrained(tmp_path)
    pairs, labels, ids = word_task(2, 4)
    fitted = TextRanker(tmp_path, max_length=30, epochs=1).fit(pairs, labels, qid=ids)
    scores = graph_scores(export_ranker(fitted, "onnx", tmp_path / "out"), pairs)
    np.testing.assert_allclose(scores, fitted.predict(pairs), atol=1e-5)


def test_what_cannot_be_traced_is_refused(folder: Path, tmp_path: Path) -> None:
    class Untraceable(torch.nn.Linear):
        def forward(self, states: torch.Tensor) -> torch.Tensor:
            if torch.jit.is_tracing():  # type: ignore[attr-defined]
                raise ValueError("not while it is traced")
            return super().forward(states)

    pairs, labels, ids = word_task(2, 4)
    fitted = TextRanker(folder / "bert", max_length=40, epochs=1).fit(pairs, labels, qid=ids)
    fitted.encoder_.transformers_model.classifier = Untraceable(32, 1)
    message = r"BertForSequenceClassification cannot be traced \(not while it is traced\)"
    with pytest.raises(ArgumentError, match=message):
        export_ranker(fitted, "onnx", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_scores_within_rounding_have_no_order(folder: Path, tmp_path: Path) -> None:
    """A ranker that learned next to nothing can be exported: what it ranks first is rounding."""
    pairs, labels, ids = word_task(2, 4)
    fitted = TextRanker(folder / "bert", max_length=40, epochs=1).fit(pairs, labels, qid=ids)
    with torch.no_grad():
        fitted.encoder_.transformers_model.classifier.weight.mul_(1e-6)
    assert np.ptp(fitted.predict(pairs)) > 0
    export_ranker(fitted, "onnx", tmp_path)
    assert verify_export(tmp_path).holds
    lines = [json.loads(line) for line in (tmp_path / "golden.jsonl").read_text().splitlines()]
    scores = [line["score"] for line in lines]
    for line, score in zip(lines, reversed(scores), strict=True):
        line["score"] = score
    (tmp_path / "golden.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    findings = [finding.text for finding in verify_export(tmp_path).findings]
    assert findings == ["golden.jsonl is not as it was written"]


@pytest.mark.parametrize(
    "change",
    [
        {"files": {"../x": "", "model.onnx": "", "golden.jsonl": ""}}, {"format": 2}, {"other": 1},
        {"tolerance": "a"}, {"tolerance": None}, {"files": {}}, {"files": [1]}, {"texts": {}},
        *(
            {"texts": {**MANIFEST["texts"], **texts}}
            for texts in ({"max_length": "9"}, {"architecture": "other"}, {"scale": 0})
        ),
    ],
)  # fmt: skip
def test_other_manifests_are_refused(tmp_path: Path, change: dict) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({**MANIFEST, **change}))
    with pytest.raises(DataError, match="is not the manifest of an export"):
        verify_export(tmp_path)
