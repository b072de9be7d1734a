"""A ranker of one's own: features weighted by how they vary with the labels of a query."""

import numpy as np

from podium.rankers import Ranker
from podium.rankers.models import MODELS, Model
from podium.rankers.storage import Archive
from podium.rankers.training_data import in_memory
from podium.scorers.models import LinearModel


class CovarianceRanker(Ranker):
    """A weighted sum of features, without an optimizer."""

    def __init__(self, *, shrinkage=0.01):
        self.shrinkage = shrinkage

    def _fit(self, data, _validation, _progress):
        """Weight each feature by its covariance with the labels, divided by its variance."""
        data = in_memory(data)  # it may be a set of shards
        features = np.nan_to_num(data.features)
        means = np.bincount(data.query_of_row, data.labels) / data.sizes
        differences = data.labels - means[data.query_of_row]
        variances = features.var(axis=0, dtype=np.float64) + self.shrinkage
        self.weights_ = differences @ features / (data.rows * variances)

    def _predict(self, features):
        """Score rows; an absent feature is NaN, here as good as 0."""
        return np.nan_to_num(features) @ self.weights_

    def _archive(self):
        """Save the weights; parameters and features' names are saved with them."""
        return Archive("", {}, {"weights": self.weights_})

    def _restore(self, archive):
        """Load them."""
        self.weights_ = archive.arrays["weights"]
        if self.weights_.shape != (self.n_features_in_,):
            raise ValueError("there is not one weight per feature")

    def _contributions(self, features):
        """Explain scores."""
        return np.nan_to_num(features) * self.weights_

    def _fitted_model(self):
        """Export the ranker, and serve it."""
        return LinearModel(self.feature_names_, self.weights_)


MODELS["Covariance"] = Model("Covariance", "ours", factory=lambda _k: CovarianceRanker())
