"""The built-in measures: functions under ``@measure``, registered by importing them.

A new measure is a function in one of these files; its name is public by that.
"""

from typing import TYPE_CHECKING

from podium.measures.definitions.average_precision import *
from podium.measures.definitions.counts import *
from podium.measures.definitions.cumulative_gain import *
from podium.measures.definitions.persistence import *
from podium.measures.definitions.precision_recall import *
from podium.measures.definitions.preferences import *
from podium.measures.definitions.reciprocal_rank import *
from podium.measures.definitions.top_k import *
from podium.measures.registry import measure_definitions

if not TYPE_CHECKING:  # a type checker takes what the files define, and no list at run time
    __all__ = [each.name for each in measure_definitions()]
