"""trec_eval's names of measures: nicknames of several, lists of cut-offs, and what it prints."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from podium.errors import ArgumentError
from podium.measures.parameters import Value
from podium.measures.registry import Measure, measure_named, unknown_measure

_CUT_OFFS = "5,10,15,20,30,100,200,500,1000"
_RECALLS = "0.0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1.0"

# The values of names of several measures without parameters, and whether those are cut-offs.
_FAMILIES = {
    "iprec_at_recall": (_RECALLS, False),
    "P": (_CUT_OFFS, True),
    "recall": (_CUT_OFFS, True),
    "Rprec_mult": ("0.2,0.4,0.6,0.8,1.0,1.2,1.4,1.6,1.8,2.0", False),
    "ndcg_cut": (_CUT_OFFS, True),
    "map_cut": (_CUT_OFFS, True),
    "relative_P": (_CUT_OFFS, True),
    "success": ("1,5,10", True),
    "unj": ("5,10,20", True),
}
# Names among these that Podium has for the whole list.
_WHOLE_LIST = {"P", "recall", "success"}

RUN_ID, RELEVANCE_STRING = "runid", "relstring"

# In the order in which trec_eval prints them.
_ORDER = (
    *(RUN_ID, "num_q", "num_ret", "num_rel", "num_rel_ret", "map", "gm_map", "Rprec", "bpref"),
    *("recip_rank", "iprec_at_recall", "P", RELEVANCE_STRING, "recall", "infAP", "gm_bpref"),
    *("Rprec_mult", "utility", "11pt_avg", "binG", "G", "ndcg", "ndcg_rel", "Rndcg", "ndcg_cut"),
    *("map_cut", "relative_P", "success", "set_P", "set_relative_P", "set_recall", "set_map"),
    *("set_F", "num_nonrel_judged_ret", "prefs_simp", "prefs_simp_imp", "yaap", "rbp"),
    *("rbp_resid", "unj"),
)
_OFFICIAL = _ORDER[:12]
_SET = (
    *(RUN_ID, "num_q", "num_ret", "num_rel", "num_rel_ret", "utility"),
    *("set_P", "set_relative_P", "set_recall", "set_map", "set_F"),
)
_NICKNAMES = {
    "official": _OFFICIAL,
    "set": _SET,
    "all_trec": tuple(
        name for name in _ORDER if name not in ("yaap", "prefs_simp", "prefs_simp_imp")
    ),
}

NAMES = frozenset(_ORDER) - _WHOLE_LIST - {"Rprec", "bpref", "rbp"}
"""Names that are trec_eval's alone, in its own case."""

# Printed for the run as a whole only.
_SUMMARY_ONLY = {"num_q", "gm_map", "gm_bpref"}

_JUDGMENT_GROUPS = {"qrels_jg", "map_avgjg", "P_avgjg", "Rprec_mult_avgjg"}

# The gain of a level that was not given is the level itself; trec_eval has no highest level.
_LEVELS = 16


@dataclass(frozen=True)
class TrecMeasure:
    """A measure as trec_eval prints it.

    Attributes:
        name: The name that is printed.
        measure: The measure; None for those that are text.
        per_query: Whether it is printed for each query.
        length: How many documents a string of relevance levels shows; 0 for measures.
    """

    name: str
    measure: Measure | None
    per_query: bool = True
    length: int = 0

    @property
    def is_count(self) -> bool:
        """Whether it is printed as an integer."""
        return self.measure is not None and self.name.startswith("num_")


def trec_eval_measures(texts: Sequence[str]) -> list[TrecMeasure]:
    """Return the measures of ``trec_eval -m`` options, in the order in which it prints them.

    Example:
        >>> [each.name for each in trec_eval_measures(["P.5,10", "num_q"])]
        ['num_q', 'P_5', 'P_10']
        >>> len(trec_eval_measures(["official"]))
        30
        >>> trec_eval_measures(["ndcg_cut.10"])[0].measure
        nDCG@10
    """
    names: dict[str, tuple[int, TrecMeasure]] = {}
    for text in texts:
        for family, each in _parse(text.strip()):
            # One string of relevance levels is printed, of the length named last.
            key = family if family == RELEVANCE_STRING else each.name
            names[key] = (_ORDER.index(family), each)
    return [each for _, each in sorted(names.values(), key=lambda pair: pair[0])]


def expand(text: str) -> list[Measure] | None:
    """Return the measures that a text of trec_eval stands for; None if it is not one of these.

    Names that are Podium's too, such as ``P`` or ``map``, are not expanded.

    Example:
        >>> expand("P.5,10"), expand("nDCG@10")
        ([P@5, P@10], None)
    """
    name, dot, parameters = text.partition(".")
    if text in (RUN_ID, RELEVANCE_STRING):
        raise ArgumentError(
            f"{text} is text, not a number", hint="podium evaluate --trec prints it."
        )
    several = "," in parameters or name not in _FAMILIES or name == "iprec_at_recall"
    known = (
        text in _NICKNAMES
        or (text in _FAMILIES and text not in _WHOLE_LIST)
        or (dot and several and name in _ORDER and name != "rbp")
        or text.startswith("rbp.p=")
        or _is_refused(text)
    )
    if not known:
        return None
    return [each.measure for _, each in _parse(text) if each.measure is not None]


def _is_refused(text: str) -> bool:
    name = text.partition(".")[0]
    preferences = name in ("prefs", "all_prefs") or name.startswith("prefs_")
    return (preferences and name not in _ORDER) or name in _JUDGMENT_GROUPS


def _parse(text: str) -> list[tuple[str, TrecMeasure]]:
    """Return the measures of one text, each with its family."""
    if text in _NICKNAMES:
        return [pair for name in _NICKNAMES[text] for pair in _parse(name)]
    if _is_refused(text):
        raise ArgumentError(
            f"{text} cannot be computed: it needs judgments in groups of several judges, which "
            "Podium does not read",
            hint="Of preferences there are prefs_simp (rpref) and prefs_simp_imp (ppref).",
        )
    name, _, parameters = text.partition(".")
    for family in _FAMILIES:
        if text.startswith(f"{family}_") and name not in _ORDER:
            name, parameters = family, text.removeprefix(f"{family}_")
    if name == RUN_ID:
        return [(name, TrecMeasure(name, None, per_query=False))]
    if name == RELEVANCE_STRING:
        length = max(0, int(_number(parameters or "10", text)))
        printed = f"{name}_{parameters}" if parameters else name
        return [(name, TrecMeasure(printed, None, length=length))]
    if name not in _ORDER:
        raise unknown_measure(name)
    measure, per_query = measure_named("GradedRBP" if name == "rbp" else name), True
    if name in _FAMILIES:
        forms = _family(name, parameters, text)
    else:
        forms, per_query = [_form(name, parameters, text)], name not in _SUMMARY_ONLY
    return [(name, TrecMeasure(form.printed, form.of(measure), per_query)) for form in forms]


class _Form(NamedTuple):
    """One form of a measure: how it is printed, its parameters and its cut-off."""

    printed: str
    parameters: Mapping[str, object]
    cut_off: int | None = None

    def of(self, measure: Measure) -> Measure:
        measure = measure(**self.parameters) if self.parameters else measure
        return measure if self.cut_off is None else measure @ self.cut_off


def _form(name: str, parameters: str, text: str) -> _Form:
    """Return the form of a measure that a text has one of."""
    settings: dict[str, object] = {"p": 0.9} if name == "rbp" else {}
    if parameters:
        if name not in _WITH_PARAMETERS:
            raise ArgumentError(f"{name} has no parameters", hint=f"Write {name} alone.")
        settings |= _WITH_PARAMETERS[name](parameters, text)
    return _Form(f"{name}_{parameters}" if parameters else name, settings)


def _family(name: str, parameters: str, text: str) -> list[_Form]:
    """Return the forms of a measure that a text has several of: cut-offs or levels."""
    default, are_cut_offs = _FAMILIES[name]
    values = sorted({_number(each, text) for each in (parameters or default).split(",")})
    if not are_cut_offs:
        parameter = "recall" if name == "iprec_at_recall" else "multiple"
        return [_Form(f"{name}_{value:.2f}", {parameter: value}) for value in values]
    if any(value < 1 or value != int(value) for value in values):
        raise ArgumentError(f"{text!r} has a cut-off that is not an integer of at least 1.")
    return [_Form(f"{name}_{int(value)}", {}, int(value)) for value in values]


def _number(text: str, whole: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ArgumentError(
            f"{text!r} in {whole!r} is not a number",
            hint="Write P.5,10 or iprec_at_recall.0.1,0.5.",
        )
    return value


def _list_of(name: str) -> Callable[[str, str], dict[str, object]]:
    return lambda parameters, text: {name: [_number(each, text) for each in parameters.split(",")]}


def _pairs(parameters: str, text: str) -> dict[str, float]:
    pairs = {}
    for each in parameters.split(","):
        key, equals, value = each.partition("=")
        if not equals:
            raise ArgumentError(f"{each!r} in {text!r} is not NAME=NUMBER.")
        pairs[key] = _number(value, text)
    return pairs


def _gains(parameters: str, text: str) -> dict[str, object]:
    gains: dict[int, Value] = {}
    for level, value in _pairs(parameters, text).items():
        if not level.isdecimal() or int(level) > 1000:
            raise ArgumentError(f"{level!r} in {text!r} is not a relevance level.")
        gains[int(level)] = value
    count = max(_LEVELS, *(level + 1 for level in gains))
    return {"gains": [gains.get(level, level) for level in range(count)]}


def _persistence(parameters: str, text: str) -> dict[str, object]:
    pairs = _pairs(parameters, text)
    if set(pairs) != {"p"}:
        raise ArgumentError(f"{text!r} has other parameters than p", hint="Write rbp.p=0.95.")
    return {"p": pairs["p"]}


def _beta(parameters: str, text: str) -> dict[str, object]:
    # trec_eval's parameter is the square of what is called beta.
    return {"beta": math.sqrt(max(_number(parameters, text), 0.0))}


_WITH_PARAMETERS: dict[str, Callable[[str, str], dict[str, object]]] = {
    "11pt_avg": _list_of("recalls"),
    "utility": _list_of("weights"),
    "ndcg": _gains,
    "ndcg_rel": _gains,
    "Rndcg": _gains,
    "G": _gains,
    "rbp": _persistence,
    "rbp_resid": _persistence,
    "set_F": _beta,
}
