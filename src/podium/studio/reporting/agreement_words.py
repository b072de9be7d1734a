"""Agreement in words, as Landis and Koch (1977) name ranges of kappa."""

from __future__ import annotations

from podium.studio.json_types import JsonObject
from podium.studio.messages import Message

_WORDS = (
    (0.0, Message("poor")),
    (0.2, Message("slight")),
    (0.4, Message("fair")),
    (0.6, Message("moderate")),
    (0.8, Message("substantial")),
)
_MOST = Message("almost perfect")


def kappa_word(kappa: float) -> Message:
    """The word for a kappa.

    Example:
        >>> kappa_word(-0.1), kappa_word(0.5), kappa_word(0.9)
        ('poor', 'moderate', 'almost perfect')
    """
    return next((word for most, word in _WORDS if kappa < most), _MOST)


def agreement_words(agreement: JsonObject) -> Message:
    """A report's agreement as a sentence, with the range that its interval allows.

    Example:
        >>> agreement_words({"fleiss": 0.5, "fleiss_interval": [0.3, 0.7]})
        'Agreement beyond chance is moderate; it may be as low as fair or as high as substantial.'
        >>> agreement_words({"fleiss": 0.5, "fleiss_interval": [0.45, 0.55]})
        'Agreement beyond chance is moderate.'
        >>> agreement_words({"fleiss": 0.1, "fleiss_interval": None})
        'Agreement beyond chance is slight.'
    """
    word = kappa_word(agreement["fleiss"])
    interval = agreement.get("fleiss_interval")
    low, high = (word, word) if interval is None else map(kappa_word, interval)
    if low != word and high != word:
        return Message(
            "Agreement beyond chance is %(word)s; it may be as low as %(low)s or as high as "
            "%(high)s.",
            word=word,
            low=low,
            high=high,
        )
    if low != word:
        return Message(
            "Agreement beyond chance is %(word)s; it may be as low as %(low)s.", word=word, low=low
        )
    if high != word:
        return Message(
            "Agreement beyond chance is %(word)s; it may be as high as %(high)s.",
            word=word,
            high=high,
        )
    return Message("Agreement beyond chance is %(word)s.", word=word)
