"""A loss of one's own: pairs that are wrong cost the square of how wrong they are.

One query's scores and labels come in; the function adds to the gradient and the curvature, which
arrive as zeros, and returns the value. It is compiled, and works with every scorer.
"""

from podium.losses import loss


@loss(smooth=True, convex=True)
def squared_hinge(scores, labels, gradient, curvature, margin=1.0):
    """The squares of what pairs lack of a margin."""
    value = 0.0
    for better in range(len(scores)):
        for worse in range(len(scores)):
            lack = margin - scores[better] + scores[worse]
            if labels[better] > labels[worse] and lack > 0.0:
                value += lack * lack
                gradient[better] -= 2.0 * lack
                gradient[worse] += 2.0 * lack
                curvature[better] += 2.0
                curvature[worse] += 2.0
    return value
