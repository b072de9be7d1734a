"""Clicks as one more assessor: a log of searches as a table, and what can be learned from it."""

from podium.clicks.check import check_log
from podium.clicks.counterfactual import evaluate_policy
from podium.clicks.importing import ImportRules, import_clicks
from podium.clicks.labels import label_clicks
from podium.clicks.models import ClickModel, Examination, fit_clicks
from podium.clicks.simulate import SimulatedUser, simulate_clicks
from podium.clicks.table import ClickLog
from podium.clicks.training import clicked_searches, train_on_clicks

__all__ = [
    "ClickLog",
    "ClickModel",
    "Examination",
    "ImportRules",
    "SimulatedUser",
    "check_log",
    "clicked_searches",
    "evaluate_policy",
    "fit_clicks",
    "import_clicks",
    "label_clicks",
    "simulate_clicks",
    "train_on_clicks",
]
