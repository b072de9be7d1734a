"""The formats of other engines: for each a writer, and a reader that follows the engine's rules."""

from podium.export.targets.base import Target
from podium.export.targets.onnx import Onnx
from podium.export.targets.opensearch import ElasticsearchPlugin, OpenSearch
from podium.registry import Registry

TARGETS: Registry[Target] = Registry(
    "target", {target.name: target for target in (Onnx(), OpenSearch(), ElasticsearchPlugin())}
)
"""Every target by its name on the command line."""
