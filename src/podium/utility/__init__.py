"""Gains and discounts of DCG, learned from preferences between rankings."""

from podium.utility.cross_validate import choose_C
from podium.utility.intervals import Intervals, bootstrap_utility
from podium.utility.learn import DCGLearn
from podium.utility.learned_utility import LearnedUtility, accuracy, read_learned, write_learned
from podium.utility.next_pair import Question, choose_pairs, next_places
from podium.utility.position_bias import PositionTest, position_test
from podium.utility.preferences import RankingPreferences
from podium.utility.preferences_file import read_preferences, write_preferences
from podium.utility.report import Accuracy, UtilityReport, utility_report
from podium.utility.report_html import report_html
from podium.utility.simulate import simulated_choices
from podium.utility.systems import Flips, SystemPair, flips
from podium.utility.utility_tables import similarity

__all__ = [
    "Accuracy",
    "DCGLearn",
    "Flips",
    "Intervals",
    "LearnedUtility",
    "PositionTest",
    "Question",
    "RankingPreferences",
    "SystemPair",
    "UtilityReport",
    "accuracy",
    "bootstrap_utility",
    "choose_C",
    "choose_pairs",
    "flips",
    "next_places",
    "position_test",
    "read_learned",
    "read_preferences",
    "report_html",
    "similarity",
    "simulated_choices",
    "utility_report",
    "write_learned",
    "write_preferences",
]
