"""From text to measures, in our own spelling and in that of other tools."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from podium.errors import ArgumentError
from podium.measures import registry, trec_eval
from podium.measures.registry import Measure

# ndcg_cut_10 and ndcg_cut.10 (trec_eval), nDCG(dcg='exp-log2')@10 (ir_measures),
# precision@10-l2 (ranx), ndcg@10 (LightGBM).
_TEXT = re.compile(
    r"(?P<name>[^\W\d][\w-]*?)"
    r"(?:\((?P<arguments>.*)\))?"
    r"(?:(?P<separator>[@_.])(?P<number>\d{0,9}\.?\d{1,9}))?"
    r"(?:-l(?P<level>\d{1,9}))?",
    re.DOTALL,
)

# What another tool calls a parameter, and what the parameter and its value are here.
_FOREIGN: dict[str, Callable[[object], dict[str, object]]] = {
    "dcg": lambda value: {"gains": {"log2": "linear", "exp-log2": "exponential"}.get(str(value))},
    "rel_lvl": lambda value: {"rel": value},
}


# Names of trec_eval that are Podium's too.
_COMMON = {"Rprec", "bpref"}
_TOOLS = {"ndcg_burges": "ranx", "dcg_burges": "ranx", "pre": "xgboost"}


def is_ir_measure(value: object) -> bool:
    """Whether it is a measure of ir_measures, which is not imported for that.

    Its text is the measure's name; its values are trec_eval's where that has the measure.
    """
    return type(value).__module__.partition(".")[0] == "ir_measures"


class Spelling(NamedTuple):
    """What a user wrote for a measure.

    Attributes:
        written: The text, or the measure itself.
        measures: What it stands for: one measure, or several (trec_eval's ``P.5,10``).
        tool: The preset of the tool whose name it is; None if several tools use it.
    """

    written: object
    measures: tuple[Measure, ...]
    tool: str | None


def read_spellings(written: Any) -> list[Spelling]:
    """Return what one or several measures, as values or as text, stand for, and whose names it is.

    trec_eval's names are its own words (``map``, ``official``) and those with a cut-off after ``_``
    or ``.``; ranx's have a level (``precision@10-l2``), ``rbp.95`` or ``_burges``; XGBoost's is
    ``pre@10``. Other names, in any case, are Podium's; a few are those of several tools.

    Example:
        >>> written = ["P.5,10", "map-l2", "nDCG@10", "ndcg@10", "bpref"]
        >>> for each in read_spellings(written):
        ...     print(each.measures, each.tool)
        (P@5, P@10) trec_eval
        (AP(rel=2),) ranx
        (nDCG@10,) podium
        (nDCG@10,) podium
        (bpref,) None
    """
    if isinstance(written, Measure | str) or is_ir_measure(written):
        written = [written]
    return [_spelling(each) for each in written]


def _spelling(written: Any) -> Spelling:
    if isinstance(written, Measure):
        return Spelling(written, (written,), "podium")
    if is_ir_measure(written):
        return Spelling(written, (parse_measure(written),), "trec_eval")
    several = trec_eval.expand(written.strip()) if isinstance(written, str) else None
    if several is not None:
        return Spelling(written, tuple(several), "trec_eval")
    return Spelling(written, (parse_measure(written),), _tool_of(written.strip()))


def _tool_of(text: str) -> str | None:
    """Return the preset of the tool whose name of one measure this is; None: of several tools."""
    match = _TEXT.fullmatch(text)
    if text in _COMMON:
        return None
    if text in trec_eval.NAMES:
        return "trec_eval"
    if match is None or (registry.find(text) and text not in _TOOLS):
        return "podium"
    if match["level"] or (match["separator"] == "." and match["name"].lower() == "rbp"):
        return "ranx"
    if match["separator"] in ("_", ".") or match["name"] in ("ndcg_cut", "map_cut"):
        return "trec_eval"
    return _TOOLS.get(match["name"], "podium")


def parse_measure(text: str | Measure) -> Measure:
    """The measure that a text names: as printed, or as other tools' users type it.

    A measure is returned as it is.

    Example:
        >>> parse_measure("kNDCG(k=10)@5")
        kNDCG(k=10)@5
        >>> [parse_measure(name) for name in ("ndcg_cut_10", "map", "recip_rank", "P.5", "mrr@10")]
        [nDCG@10, AP, RR, P@5, RR@10]
        >>> parse_measure("nDGC@10")
        Traceback (most recent call last):
        podium.errors.ArgumentError: ... 'nDGC'. Did you mean: nDCG, ...?
    """
    if isinstance(text, Measure):
        return text
    if is_ir_measure(text):
        text = str(text)
    if not isinstance(text, str):  # a setting of the command line may be any JSON
        raise ArgumentError(f"the measure is {text!r}", hint="Give its name, such as nDCG@10.")
    text = text.strip()
    exact = registry.find(text)
    if exact is not None:
        return exact
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ArgumentError(f"{text!r} is not a valid measure. Write one as nDCG@10 or P(rel=2)@5.")
    measure = registry.measure_named(match["name"])
    if match["arguments"]:
        measure = measure(**_arguments(text, match["arguments"]))
    if match["level"]:
        measure = measure(rel=int(match["level"]))
    if not match["number"]:
        return measure
    for parameter in registry.definition_of(measure).parameters:
        if match["name"].lower() in parameter.suffix_of:
            return measure(**{parameter.name: float(match["number"])})
        if parameter.decimals and match["separator"] == ".":
            return measure(**{parameter.name: float(f"0.{match['number'].rpartition('.')[2]}")})
    if "." in match["number"]:
        raise ArgumentError(
            f"the cut-off of {text!r} is not an integer", hint=f"Write {measure!r}@10."
        )
    return measure @ int(match["number"])


def _arguments(text: str, arguments: str) -> dict[str, object]:
    """Keyword arguments of literals; a bare word is a string, so that shells need no quotes."""
    try:
        call = ast.parse(f"f({arguments})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ArgumentError(f"{text!r} cannot be read", hint="Write P(rel=2)@5.") from error
    if not isinstance(call, ast.Call) or call.args or any(not each.arg for each in call.keywords):
        raise ArgumentError(f"{text!r} cannot be read", hint="Name every parameter: P(rel=2)@5.")
    parameters: dict[str, object] = {}
    for each in call.keywords:
        if isinstance(each.value, ast.Name):
            value: object = each.value.id
        else:
            try:
                value = ast.literal_eval(each.value)
            except (ValueError, TypeError, RecursionError, MemoryError) as error:
                hint = "Give numbers, words, or lists of numbers."
                raise ArgumentError(
                    f"{each.arg} in {text!r} is not a valid value", hint=hint
                ) from error
        name = str(each.arg)
        parameters |= _FOREIGN[name](value) if name in _FOREIGN else {name: value}
    return parameters
