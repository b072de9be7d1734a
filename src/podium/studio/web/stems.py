"""Stems of English words: the first step of Porter's algorithm (1980), and no final e.

It is enough to tell that shoe and shoes, or bake and baking, are forms of one word. Words of other
languages are mostly their own stems.
"""

from __future__ import annotations

import re

_VOWEL = re.compile(r"[aeiou]|(?<=[^aeiou])y")
_SHORTEST = 4
"""Shorter words have no endings to speak of."""


def stem(word: str) -> str:
    """The stem of a word in small letters.

    Example:
        >>> [stem(word) for word in ("shoes", "shoe", "berries", "running", "runs", "bed", "glass")]
        ['sho', 'sho', 'berri', 'run', 'run', 'bed', 'glass']
    """
    if len(word) < _SHORTEST or not word.isascii() or not word.isalpha():
        return word
    word = _without_plural(word)
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) > 1 and _VOWEL.search(rest):
            word = _undoubled(rest)
            break
    if word.endswith("y") and _VOWEL.search(word[:-1]):
        return f"{word[:-1]}i"
    if word.endswith("e") and len(word) > 3:
        return word[:-1]
    return word


def _without_plural(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith("ies"):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _undoubled(word: str) -> str:
    """Without the second of two same consonants, which an ending doubled."""
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeioulsz":
        return word[:-1]
    return word
