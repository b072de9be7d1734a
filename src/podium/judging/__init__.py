"""The ordered top k with the fewest judgments, and everything about the people who judge.

How far people agree is measured in `podium.judging.agreement`; the selection algorithms are in
`podium.judging.algorithms`.
"""

from podium.judging.active_sampling import by_expected_gain, expected_gains
from podium.judging.algorithms.selection import Pair
from podium.judging.assessors.calibrate import Calibration, calibrate
from podium.judging.assessors.endpoint import EndpointAssessor, EndpointError
from podium.judging.assessors.panel import Assessor, judge_session
from podium.judging.assessors.simulated import (
    GRADE_SECONDS,
    HABITS,
    PAIR_SECONDS,
    Habits,
    SimulatedAssessor,
)
from podium.judging.assignment import Assignment, Overlap, balance, rotate
from podium.judging.bradley_terry import Duels, Worths, fit_worths
from podium.judging.contradictions import Contradiction
from podium.judging.entries import (
    Entry,
    Grade,
    Mark,
    Outcome,
    SideBySide,
    Undo,
    Verdict,
    seconds_spent,
    standing,
)
from podium.judging.grading import GradingSession, side_by_side_totals
from podium.judging.result import Result, log_preferences, session_judgments
from podium.judging.session import Session
from podium.judging.session_file import Journal
from podium.judging.stopwatch import Stopwatch
from podium.judging.workload import Workload, plan, plan_grading

__all__ = [
    "GRADE_SECONDS",
    "HABITS",
    "PAIR_SECONDS",
    "Assessor",
    "Assignment",
    "Calibration",
    "Contradiction",
    "Duels",
    "EndpointAssessor",
    "EndpointError",
    "Entry",
    "Grade",
    "GradingSession",
    "Habits",
    "Journal",
    "Mark",
    "Outcome",
    "Overlap",
    "Pair",
    "Result",
    "Session",
    "SideBySide",
    "SimulatedAssessor",
    "Stopwatch",
    "Undo",
    "Verdict",
    "Workload",
    "Worths",
    "balance",
    "by_expected_gain",
    "calibrate",
    "expected_gains",
    "fit_worths",
    "judge_session",
    "log_preferences",
    "plan",
    "plan_grading",
    "rotate",
    "seconds_spent",
    "session_judgments",
    "side_by_side_totals",
    "standing",
]
