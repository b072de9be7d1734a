from .comparison import compare_groups, compare_interleaved
from .drafts import interleave
from .planning import plan_online
from .report import require_online

__all__ = [
    "compare_groups",
    "compare_interleaved",
    "interleave",
    "plan_online",
    "require_online",
]
