"""A measure of one's own: how much of the first screen a query's best documents fill.

It takes what it needs by name: `labels` by descending score, `ideal`, the labels of all documents
from the largest down, and `cut`, the cut-off. What has a default is a parameter of the measure. It
is compiled.
"""

from typing import Annotated

from podium.kernels import Floats
from podium.measures import Parameter, measure, number_between

Fade = Annotated[float, Parameter("What a rank counts of the one above.", number_between(0, 1))]


@measure("Screen")
def screen(labels: Floats, ideal: Floats, cut: int, fade: Fade = 0.8) -> float:
    """The labels in view, fading from rank to rank, as a share of the best possible."""
    total = best = 0.0
    weight = 1.0
    for position in range(min(cut, len(ideal))):
        if position < len(labels) and labels[position] > 0.0:
            total += weight * labels[position]
        best += weight * ideal[position]
        weight *= fade
    return total / best if best > 0.0 else 0.0
