"""The ordered top k with the fewest judgments, and everything about the people who judge.

How far people agree is measured in `podium.judging.agreement`; the selection algorithms are in
`podium.judging.algorithms`.
"""

from podium.judging.active_sampling import by_expected_gain, expected_gains
from podium.judging.algorithms.selection import Pair
from podium.judging.assessors.calibrate import Calibration, calibrate
from podium.judging.assessors.panel import Assessor, Grader, grade_session, judge_session
from podium.judging.assessors.simulated import (
    GRADE_SECONDS,
    HABITS,
    PAIR_SECONDS,
    Habits,
    SimulatedAssessor,
)
from podium.judging.assignment import Assignment, Overlap, balance, rotate
from podium.judging.auditing.alt_test import AltTest, alt_test
from podium.judging.auditing.audit import Audit, audit
from podium.judging.auditing.conclusion import Conclusion
from podium.judging.auditing.plan import AuditPlan, plan_audit
from podium.judging.auditing.report import audit_page
from podium.judging.auditing.sample import AuditSample, HumanLabels, Unit, human_labels
from podium.judging.auditing.sheet import draw_units, read_sheet, write_sheet
from podium.judging.bradley_terry import Duels, Posterior, fit_bradley_terry
from podium.judging.contradictions import Contradiction
from podium.judging.entries import (
    Entry,
    Grade,
    Mark,
    Outcome,
    SideBySide,
    Undo,
    Verdict,
    active_entries,
    seconds_spent,
)
from podium.judging.grading import GradingSession, grade_judgments, side_by_side_totals
from podium.judging.kndcg import k_ndcg
from podium.judging.models.answer_log import AnswerLog, ModelAnswer, read_answers
from podium.judging.models.assessor import EndpointAssessor
from podium.judging.models.budget import Budget, BudgetError
from podium.judging.models.endpoint import Endpoint, EndpointError
from podium.judging.models.injection import injection_flags
from podium.judging.models.rubric import RUBRICS, Rubric, read_rubric
from podium.judging.models.scores import model_scores
from podium.judging.preference_labels import preference_judgments
from podium.judging.result import SessionResult, log_preferences, session_judgments
from podium.judging.session import Session
from podium.judging.session_file import SessionFile
from podium.judging.stopwatch import Stopwatch
from podium.judging.workload import Workload, estimate_grading_workload, estimate_workload

__all__ = [
    "GRADE_SECONDS",
    "HABITS",
    "PAIR_SECONDS",
    "RUBRICS",
    "AltTest",
    "AnswerLog",
    "Assessor",
    "Assignment",
    "Audit",
    "AuditPlan",
    "AuditSample",
    "Budget",
    "BudgetError",
    "Calibration",
    "Conclusion",
    "Contradiction",
    "Duels",
    "Endpoint",
    "EndpointAssessor",
    "EndpointError",
    "Entry",
    "Grade",
    "Grader",
    "GradingSession",
    "Habits",
    "HumanLabels",
    "Mark",
    "ModelAnswer",
    "Outcome",
    "Overlap",
    "Pair",
    "Posterior",
    "Rubric",
    "Session",
    "SessionFile",
    "SessionResult",
    "SideBySide",
    "SimulatedAssessor",
    "Stopwatch",
    "Undo",
    "Unit",
    "Verdict",
    "Workload",
    "active_entries",
    "alt_test",
    "audit",
    "audit_page",
    "balance",
    "by_expected_gain",
    "calibrate",
    "draw_units",
    "estimate_grading_workload",
    "estimate_workload",
    "expected_gains",
    "fit_bradley_terry",
    "grade_judgments",
    "grade_session",
    "human_labels",
    "injection_flags",
    "judge_session",
    "k_ndcg",
    "log_preferences",
    "model_scores",
    "plan_audit",
    "preference_judgments",
    "read_answers",
    "read_rubric",
    "read_sheet",
    "rotate",
    "seconds_spent",
    "session_judgments",
    "side_by_side_totals",
    "write_sheet",
]
