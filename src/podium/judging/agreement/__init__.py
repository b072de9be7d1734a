"""How far people agree, how sure that is, and what they agree on."""

from podium.judging.agreement.coefficients import (
    Interval,
    bootstrap_agreement,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
)
from podium.judging.agreement.consensus import Consensus, dawid_skene
from podium.judging.agreement.matrix import (
    Agreement,
    AgreementTest,
    compare_agreement,
    inferred_verdicts,
    self_consistency,
)
from podium.judging.agreement.ratings import Ratings
from podium.judging.votes import majority

__all__ = [
    "Agreement",
    "AgreementTest",
    "Consensus",
    "Interval",
    "Ratings",
    "bootstrap_agreement",
    "cohen_kappa",
    "compare_agreement",
    "dawid_skene",
    "fleiss_kappa",
    "inferred_verdicts",
    "krippendorff_alpha",
    "majority",
    "self_consistency",
]
