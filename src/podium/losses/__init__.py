"""Losses: functions of one query's scores and labels, with their gradients.

A loss returns its value, its gradient and its curvature, and knows nothing of features, so any
loss trains any scorer. For n documents per query and the order of their top k:

| loss | known from | smooth | convex | cost |
| --- | --- | --- | --- | --- |
| ``PairHinge`` | RankSVM | no | yes | O(n k), never above O(n log n) |
| ``PairRounded`` | the same with its kink rounded | yes | yes | O(n k) |
| ``PairLogistic`` | RankNet | yes | yes | O(n k) |
| ``PairExponential`` | RankBoost | yes | yes | O(n log k) |
| ``ListMLE`` | ListMLE, top-k ListMLE | yes | yes | O(n log k) |
| ``ListNet`` | ListNet, top-k ListNet | yes | yes | O(n log k) |
| ``RankCosine`` | RankCosine, top-k RankCosine | yes | no | O(n log k) |
| ``SquaredError`` | regression | yes | yes | O(n log k) |
| ``StructuralHinge`` | SVM-MAP, TopMargin, TopSlack | no | by its ties | O(n log k) |
| ``LambdaLoss`` | LambdaMART, LambdaLoss | no | no | O(n k) |
| ``Focused`` | FocusedNet, FocusedSVM | as its terms | as its terms | as its terms |

``k=None`` takes the whole order. Documents tied with the k-th belong to the top k, equal labels
ask for no order, and documents with the lowest label are preferred to none. A user-defined loss is
a function under the decorator ``loss``.
"""

from podium.losses.base import Loss
from podium.losses.custom import loss
from podium.losses.focused import Focused
from podium.losses.lambda_loss import LambdaLoss
from podium.losses.list_mle import ListMLE
from podium.losses.list_net import ListNet
from podium.losses.pair_exponential import PairExponential
from podium.losses.pair_hinge import PairHinge
from podium.losses.pair_logistic import PairLogistic
from podium.losses.pair_rounded import PairRounded
from podium.losses.rank_cosine import RankCosine
from podium.losses.squared_error import SquaredError
from podium.losses.structural import StructuralHinge

__all__ = [
    "Focused",
    "LambdaLoss",
    "ListMLE",
    "ListNet",
    "Loss",
    "PairExponential",
    "PairHinge",
    "PairLogistic",
    "PairRounded",
    "RankCosine",
    "SquaredError",
    "StructuralHinge",
    "loss",
]
