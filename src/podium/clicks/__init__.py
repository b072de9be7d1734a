"""Clicks as one more assessor: a log of searches as a table, and what can be learned from it."""

from podium.clicks.fetching import fetch_ubi
from podium.clicks.importing import ImportRules, import_clicks
from podium.clicks.table import ClickLog

__all__ = ["ClickLog", "ImportRules", "fetch_ubi", "import_clicks"]
