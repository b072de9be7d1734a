"""A measure of one's own: how much of the first screen a query's best documents fill.

It is told one ranked query (`labels` by descending score, `ideal` the labels of all documents,
largest first) and the settings (`cut`, conventions, its own parameters in `own`). It is compiled.
"""

from podium.measures import Parameter, Ranked, Settings, measure
from podium.measures.value import number_between


@measure(
    "Screen",
    parameters=(
        Parameter("fade", "What each place counts of the one before.", number_between(0, 1), 0.8),
    ),
)
def screen(query: Ranked, settings: Settings) -> float:
    """The labels in view, fading from place to place, as a share of the best possible."""
    fade = settings.own[0]
    found = best = 0.0
    weight = 1.0
    for place in range(min(settings.cut, len(query.ideal))):
        if place < len(query.labels) and query.labels[place] > 0.0:
            found += weight * query.labels[place]
        best += weight * query.ideal[place]
        weight *= fade
    return found / best if best > 0.0 else 0.0
