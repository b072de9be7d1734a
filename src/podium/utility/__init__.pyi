from .learn import DCGLearn
from .next_pair import choose_pairs
from .preferences import RankingPreferences
from .preferences_file import write_preferences
from .report import utility_report
from .simulate import simulated_choices

__all__ = [
    "DCGLearn",
    "RankingPreferences",
    "choose_pairs",
    "simulated_choices",
    "utility_report",
    "write_preferences",
]
