from .comparison import (
    OnlineReport,
    OnlineResult,
    compare_groups,
    compare_interleaved,
)
from .drafts import Draft, interleave
from .planning import OnlinePlan, online_agreement, plan_online
from .report import require_online
from .sequence import Interval

__all__ = [
    "Draft",
    "Interval",
    "OnlinePlan",
    "OnlineReport",
    "OnlineResult",
    "compare_groups",
    "compare_interleaved",
    "interleave",
    "online_agreement",
    "plan_online",
    "require_online",
]
