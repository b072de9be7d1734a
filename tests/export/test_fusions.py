"""Fusions of lists for search engines: files, golden queries, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from podium.data import Rankings, write_run
from podium.errors import ArgumentError, DataError
from podium.export import connect_engine, deploy_export, export_ranker, roll_back, verify_export
from podium.export.deployments import Deployment, delete_stored
from podium.export.folder import ExportFolder
from podium.export.targets.fusions import FUSION_TARGETS
from podium.export.writing import ExportSettings
from podium.hybrid.fusion import Fusion, QueryWeights
from tests.cli.run_podium import fail, podium
from tests.export.pipeline_server import PipelineServer

NAN = float("nan")
LISTS = ("bm25", "dense v2")
SCORED = {"opensearch": "pipeline.json", "elasticsearch": "retriever.json",
          "vespa": "rank-profile.sd", "solr": "request.json"}  # fmt: skip
WRITABLE = [
    ("opensearch", "min-max", "arithmetic", "2.10"),
    ("opensearch", "l2", "geometric", "2.10"),
    ("opensearch", "min-max", "harmonic", "2.10"),
    ("opensearch", "z-score", "arithmetic", "3.0"),
    ("opensearch", "rank", "geometric", "3.0"),
    ("opensearch", "rank", "rrf", "3.1"),
    ("elasticsearch", "min-max", "arithmetic", "8.19"),
    ("elasticsearch", "l2", "arithmetic", "8.19"),
    ("elasticsearch", "none", "arithmetic", "8.19"),
    ("elasticsearch", "rank", "rrf", "9.2"),
    ("vespa", "min-max", "arithmetic", "8"),
    ("vespa", "rank", "rrf", "8"),
    ("vespa", "none", "arithmetic", "8"),
    ("solr", "min-max", "arithmetic", "9.0"),
    ("solr", "none", "arithmetic", "9.0"),
]
PER_QUERY = QueryWeights(("words",), (2.0,), (1.0,), ((0.1,), (-0.1,)))


def fusion_of(normalization: str, combination: str, weights: tuple[float, ...] = (1, 3)) -> Fusion:
    return Fusion(LISTS, normalization, combination, weights, depth=40)  # type: ignore[arg-type]


@pytest.mark.parametrize(("target", "normalization", "combination", "oldest"), WRITABLE)
def test_files_say_what_the_fusion_says(
    target: str, normalization: str, combination: str, oldest: str, tmp_path: Path
) -> None:
    fusion = fusion_of(normalization, combination)
    export = export_ranker(fusion, target, tmp_path)
    assert export.manifest.engine_version == oldest
    assert export.engine_names == ["bm25", "dense_v2"]
    verification = verify_export(tmp_path)
    assert verification.holds
    assert verification.largest == 0
    assert verification.rows > 300
    read = FUSION_TARGETS[target].read(export.target_files(), tuple(export.engine_names))
    assert read.weights == fusion.weights
    assert read.normalization == normalization


@pytest.mark.parametrize("target", SCORED)
def test_another_weight_in_a_file_is_found(target: str, tmp_path: Path) -> None:
    export_ranker(fusion_of("min-max", "arithmetic"), target, tmp_path)
    file = tmp_path / SCORED[target]
    text = file.read_text()
    assert "0.75" in text
    file.write_text(text.replace("0.75", "0.7501").replace("0.25", "0.2499"))
    verification = verify_export(tmp_path)
    assert not verification.holds
    assert verification.off
    assert verification.changed == (SCORED[target],)
    texts = [finding.text for finding in verification.findings]
    assert "list dense v2 has weight 0.75, not 0.75" in texts or any(
        "dense v2" in text for text in texts
    )


@pytest.mark.parametrize("target", SCORED)
@pytest.mark.parametrize("broken", ["", "{}", "[1]", '{"query": 3, "retriever": 1}', "\x00"])
def test_a_file_of_another_form_is_an_error(target: str, broken: str, tmp_path: Path) -> None:
    export_ranker(fusion_of("min-max", "arithmetic"), target, tmp_path)
    (tmp_path / SCORED[target]).write_text(broken)
    with pytest.raises(DataError):
        verify_export(tmp_path)


def test_a_weight_without_a_decimal_point_is_one_that_opensearch_refuses(tmp_path: Path) -> None:
    export_ranker(Fusion(LISTS, weights=(1, 0)), "opensearch", tmp_path)
    file = tmp_path / "pipeline.json"
    assert "1.0," in file.read_text()
    file.write_text(file.read_text().replace("1.0", "1"))
    with pytest.raises(DataError, match="decimal point"):
        verify_export(tmp_path)


@pytest.mark.parametrize(
    ("target", "normalization", "combination", "words"),
    [
        ("opensearch", "none", "arithmetic", "scores as they are. Choose min-max or l2"),
        ("opensearch", "z-score", "harmonic", "a harmonic mean of z-scores. Choose the arith"),
        ("elasticsearch", "z-score", "arithmetic", "z-scores. Choose min-max"),
        ("elasticsearch", "min-max", "geometric", "a geometric mean. Choose the arithmetic"),
        ("vespa", "l2", "arithmetic", "l2. Choose min-max"),
        ("solr", "rank", "rrf", "ranks. Choose min-max"),
    ],
)
def test_what_an_engine_cannot_express_is_refused(
    target: str, normalization: str, combination: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(ArgumentError, match=f"does not fuse by {words}"):
        export_ranker(fusion_of(normalization, combination), target, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_other_refusals(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="no target for fusions 'onnx'"):
        export_ranker(Fusion(LISTS), "onnx", tmp_path)
    with pytest.raises(ArgumentError, match="weights that depend on the query"):
        export_ranker(Fusion(LISTS, per_query=PER_QUERY), "opensearch", tmp_path)
    with pytest.raises(ArgumentError, match=r"a number of the documents \(margin\)"):
        export_ranker(Fusion(("bm25", "margin"), columns=("margin",)), "vespa", tmp_path)
    with pytest.raises(ArgumentError, match=r"6 lists\. Choose the best 5"):
        export_ranker(Fusion(tuple("abcdef")), "opensearch", tmp_path)
    with pytest.raises(ArgumentError, match=r"version 2\.19\. It can from 3\.1 on"):
        export_ranker(
            fusion_of("rank", "rrf"), "opensearch", tmp_path, ExportSettings(engine_version="2.19")
        )
    with pytest.raises(DataError, match="'body' is not a list of the fusion"):
        export_ranker(
            Fusion(LISTS), "opensearch", tmp_path, ExportSettings(extractors={"body": {}})
        )
    with pytest.raises(ArgumentError, match="is not put into a running engine"):
        connect_engine("vespa", "http://localhost:1", fuses=True)
    with pytest.raises(ArgumentError, match="a fusion for 'solr' is not put"):
        connect_engine("solr", "http://localhost:1/solr/shop", fuses=True)


def scores(target: str, fusion: Fusion, votes: list[list[float]]) -> list[float]:
    array = np.array(votes)
    scored = FUSION_TARGETS[target].scores(fusion, array, np.array([0, len(array)]))
    return [round(score, 6) for score in scored.tolist()]


@pytest.mark.parametrize(
    ("target", "one", "equal", "last"),
    [
        ("opensearch", [1], [1, 1], [1, 0.0005]),
        ("elasticsearch", [1], [1, 1], [1, 0]),
        ("vespa", [0.5], [0.5, 0.5], [1, 0.0005]),
        ("solr", [0.001], [0.001, 0.001], [1, 0.0005]),
    ],
)
def test_edge_cases_of_min_max(
    target: str, one: list[float], equal: list[float], last: list[float]
) -> None:
    fusion = Fusion(("a", "b"))
    assert scores(target, fusion, [[3, 8]]) == one
    assert scores(target, fusion, [[3, 8], [3, 8]]) == equal
    # The last document of one list, which the other one does not have.
    assert scores(target, fusion, [[3, 8], [2, NAN], [NAN, 8]])[:2] == pytest.approx(
        [0.5 + one[0] / 2, last[1]]
    )


def test_ranks_and_sums_of_other_engines() -> None:
    votes: list[list[float]] = [[9, NAN], [7, 2], [8, 1], [NAN, NAN]]
    rrf = Fusion(("a", "b"), "rank", "rrf", (1, 3), rank_constant=10)
    expected = [0.25 / 11, 0.25 / 13 + 0.75 / 11, 0.25 / 12 + 0.75 / 12, 0]
    for target in ("opensearch", "elasticsearch", "vespa"):
        assert scores(target, rrf, votes) == pytest.approx(expected, abs=2e-6)
    # Equal weights are left out, so that older versions take them: each is 1.
    equal = Fusion(("a", "b"), "rank", "rrf", rank_constant=10)
    for target in ("opensearch", "elasticsearch"):
        assert scores(target, equal, votes)[0] == pytest.approx(1 / 11, abs=2e-6)
    l2 = Fusion(("a", "b"), "l2", weights=(1, 0))
    assert scores("elasticsearch", l2, [[3, NAN], [4, 1]]) == [0.6, 0.8]
    plain = Fusion(("a", "b"), "none", weights=(1, 3))
    for target in ("elasticsearch", "vespa", "solr"):
        assert scores(target, plain, votes) == [2.25, 3.25, 2.75, 0]


def test_lists_get_names_that_the_engine_takes(tmp_path: Path) -> None:
    for lists in (("max", "dense"), ("a", "a_or_absent"), ("a-b", "a b"), ("3", "if")):
        export = export_ranker(Fusion(lists), "vespa", tmp_path)
        assert export.engine_names in (["f1", "f2"], ["f3", "f2"])
        assert verify_export(tmp_path).holds
    assert export_ranker(Fusion(("max", "b")), "solr", tmp_path).engine_names == ["max", "b"]


def test_vespa_has_no_document_of_a_score_of_0_or_less() -> None:
    fusion = Fusion(("a",), "rank", "rrf", rank_constant=1)
    assert scores("vespa", fusion, [[2], [-1], [0], [3]]) == [round(1 / 3, 6), 0, 0, 0.5]


def test_only_the_first_documents_of_a_list_count() -> None:
    fusion = Fusion(("a",), "none", depth=2)
    for target in ("elasticsearch", "vespa"):
        assert scores(target, fusion, [[1], [3], [2]]) == [0, 3, 2]
    assert scores("solr", fusion, [[1], [3], [2]]) == [1, 3, 2]  # it has no depth, and says so
    assert "not 2" in FUSION_TARGETS["solr"].limits(fusion)[0]


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    paths = []
    for name, shift in (("bm25", 3), ("dense", 5)):
        ids = [f"d{(shift * each) % 11}" for each in range(8)] * 12
        queries = [f"q{each // 8}" for each in range(96)]
        values = np.linspace(9, 1, 96).tolist()
        write_run(Rankings.from_columns(queries, ids, values, name=name), tmp_path / f"{name}.run")
        paths.append(str(tmp_path / f"{name}.run"))
    return paths


def test_the_command_writes_lists_of_real_queries(tmp_path: Path, runs: list[str]) -> None:
    saved = tmp_path / "hybrid.toml"
    Fusion(("bm25", "dense")).save(saved)
    (tmp_path / "lists.json").write_text(json.dumps({"bm25": {"match": {"title": "{{keywords}}"}}}))
    options = [part for run in runs for part in ("--list", run)]
    result = podium(
        "export", str(saved), "--to", "elasticsearch", "-o", str(tmp_path / "out"), *options,
        "--extractors", str(tmp_path / "lists.json"),
    )  # fmt: skip
    assert "golden rows of 57 queries" in result.stderr.decode()
    assert "Note: Unverified live: no registry" in result.stderr.decode()
    retrievers = ExportFolder.open(tmp_path / "out").read_json("retriever.json")
    first = retrievers["retriever"]["linear"]["retrievers"][0]
    assert first["retriever"] == {"match": {"title": "{{keywords}}"}}
    verified = podium("verify", str(tmp_path / "out"))
    assert "0 of" in verified.stdout.decode()
    assert "not checked: unverified live" in verified.stdout.decode()


def test_the_command_refuses(tmp_path: Path, runs: list[str]) -> None:
    saved = tmp_path / "hybrid.toml"
    Fusion(("bm25", "dense")).save(saved)
    assert "--raw is not for a fusion" in fail("export", str(saved), "--to", "solr", "--raw")
    few = fail("export", str(saved), "--to", "solr", "--list", runs[0])
    assert "given 1 times for 2 lists" in few
    assert "is one of the files to read" in fail(
        "export", str(saved), "--to", "solr", "-o", str(tmp_path)
    )


def deploy(server: PipelineServer, folder: Path, weights: tuple[float, ...]) -> Deployment:
    export = export_ranker(
        Fusion(LISTS, weights=weights), "opensearch", folder, ExportSettings(model_name="shop")
    )
    return deploy_export(export, connect_engine("opensearch", server.url, fuses=True))


def test_a_pipeline_is_put_switched_and_rolled_back(tmp_path: Path) -> None:
    with PipelineServer() as server:
        engine = connect_engine("opensearch", server.url)
        first = deploy(server, tmp_path / "first", (1, 3))
        second = deploy(server, tmp_path / "second", (1, 1))
        assert first.verification.holds
        assert (first.before, second.before, second.live) == (None, first.live, second.version)
        assert set(server.pipelines) == {"shop", first.version, second.version}
        parts = "phase_results_processors"
        assert server.pipelines["shop"][parts] == server.pipelines[second.version][parts]
        assert list(engine.stored().versions) == sorted([first.version, second.version])
        assert roll_back("shop", engine) == first.version
        assert server.pipelines["shop"][parts] == server.pipelines[first.version][parts]
        with pytest.raises(ArgumentError, match="searches refer to"):
            delete_stored(first.version, engine)
        delete_stored(second.version, engine)
        assert set(server.pipelines) == {"shop", first.version}
        assert server.indices == {}


def test_searches_keep_their_pipeline_if_golden_queries_score_otherwise(tmp_path: Path) -> None:
    with PipelineServer() as server:
        first = deploy(server, tmp_path / "first", (1, 3))
        server.shift = 1e-6
        second = deploy(server, tmp_path / "second", (1, 1))
        assert not second.verification.holds
        assert second.live == first.live
        assert second.version in server.pipelines


def test_a_pipeline_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    with PipelineServer() as server:
        server.pipelines["shop"] = {"description": "ours", "request_processors": []}
        with pytest.raises(DataError, match="'shop' that is not Podium's"):
            deploy(server, tmp_path, (1, 3))
        assert server.pipelines == {"shop": {"description": "ours", "request_processors": []}}
