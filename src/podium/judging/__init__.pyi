from .algorithms.selection import Pair
from .assessors.panel import judge_session
from .assessors.simulated import HABITS, SimulatedAssessor
from .assignment import Overlap, balance, rotate
from .auditing.audit import audit
from .auditing.plan import plan_audit
from .entries import Grade, Mark, Outcome, SideBySide, Verdict
from .models.answer_log import AnswerLog
from .models.assessor import EndpointAssessor
from .models.budget import Budget
from .models.endpoint import Endpoint, EndpointError
from .preference_labels import preference_judgments
from .result import log_preferences, session_judgments
from .session import Session
from .session_file import SessionFile

__all__ = [
    "HABITS",
    "AnswerLog",
    "Budget",
    "Endpoint",
    "EndpointAssessor",
    "EndpointError",
    "Grade",
    "Mark",
    "Outcome",
    "Overlap",
    "Pair",
    "Session",
    "SessionFile",
    "SideBySide",
    "SimulatedAssessor",
    "Verdict",
    "audit",
    "balance",
    "judge_session",
    "log_preferences",
    "plan_audit",
    "preference_judgments",
    "rotate",
    "session_judgments",
]
