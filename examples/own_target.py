"""An export target of one's own: weights of a linear ranker, for an engine that adds them up."""

import json

import numpy as np

from podium.export.targets import TARGETS
from podium.export.targets.base import EngineModel, Target, Written
from podium.scorers.models import LinearModel


class Weights(Target):
    """A file of weights by the names of features."""

    name = "weights"
    title = "Our engine"
    default_version = "1"
    single_precision = False

    def write_trees(self, _request, _model):
        """Refuse what the engine cannot compute."""
        self.refuse_always("trees", "Export it to onnx.")

    def write_linear(self, request, model):
        """Write the weights; a feature that a document lacks is 0 in the engine."""
        weights = dict(zip(request.names, model.weights.tolist(), strict=True))
        files = {"weights.json": json.dumps(weights).encode()}
        return Written(files, absent=(0.0,) * len(request.names))

    def read(self, files, features, _model):
        """Read the weights as the engine does: golden rows are scored by what this returns."""
        weights = json.loads(files["weights.json"])
        names = tuple(feature.engine_name for feature in features)
        read = LinearModel(names, np.array([weights[name] for name in names]))
        return EngineModel(read, np.zeros(len(names)), single_precision=False)


TARGETS["weights"] = Weights()
