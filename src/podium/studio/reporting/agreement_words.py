"""Agreement in words, as Landis and Koch (1977) name ranges of kappa."""

from __future__ import annotations

from podium.studio.json_types import JsonObject

_WORDS = (
    (0.0, "poor"),
    (0.2, "slight"),
    (0.4, "fair"),
    (0.6, "moderate"),
    (0.8, "substantial"),
)


def kappa_word(kappa: float) -> str:
    """The word for a kappa.

    Example:
        >>> kappa_word(-0.1), kappa_word(0.5), kappa_word(0.9)
        ('poor', 'moderate', 'almost perfect')
    """
    return next((word for most, word in _WORDS if kappa < most), "almost perfect")


def agreement_words(agreement: JsonObject) -> str:
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
    sentence = f"Agreement beyond chance is {word}"
    interval = agreement.get("fleiss_interval")
    if interval is None:
        return f"{sentence}."
    low, high = map(kappa_word, interval)
    ends = []
    if low != word:
        ends.append(f"as low as {low}")
    if high != word:
        ends.append(f"as high as {high}")
    return f"{sentence}; it may be {' or '.join(ends)}." if ends else f"{sentence}."
