"""The formats of other engines: for each a writer, and a reader that follows the engine's rules."""

from podium.export.targets.base import Target
from podium.export.targets.elasticsearch import Elasticsearch
from podium.export.targets.onnx import Onnx
from podium.export.targets.opensearch import ElasticsearchPlugin, OpenSearch
from podium.export.targets.solr import Solr
from podium.export.targets.vespa import Vespa
from podium.registry import Registry

_ALL: tuple[Target, ...] = (
    Onnx(), OpenSearch(), ElasticsearchPlugin(), Solr(), Elasticsearch(), Vespa()
)  # fmt: skip

TARGETS: Registry[Target] = Registry("target", {target.name: target for target in _ALL})
"""Every target by its name on the command line."""
