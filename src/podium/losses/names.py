"""Losses as text, for the command line and for files."""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields
from typing import Any

from podium.errors import ArgumentError
from podium.losses.base import Loss
from podium.registry import unknown_name

_ALIASES = {
    "LambdaRank": "LambdaLoss",
    "LambdaMART": "LambdaLoss",
    "rank:ndcg": "LambdaLoss",
    "RankNet": "PairLogistic",
    "rank:pairwise": "PairLogistic",
    "rank_xendcg": "ListNet",
    "xendcg": "ListNet",
}
"""Names of other tools. LightGBM's rank_xendcg is ListNet with random gains."""
_BY_LOWER = {alias.lower(): name for alias, name in _ALIASES.items()}


def parse_loss(text: str) -> Loss:
    """Parse the ``repr`` of a loss; no code in the text is executed.

    User-defined losses are known once the module that defines them is imported. The names of the
    ranking objectives of LightGBM and XGBoost stand for Podium's losses of the same kind.

    Example:
        >>> parse_loss("ListMLE(k=10)")
        ListMLE(k=10)
        >>> parse_loss("Focused(ListNet, PairLogistic, beta=0.3)").beta
        0.3
        >>> parse_loss("rank:ndcg") == parse_loss("LambdaMART") == parse_loss("LambdaLoss")
        True
    """
    text = _BY_LOWER.get(text.strip().lower(), text)
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise ArgumentError(f"{text!r} is not a loss. Write it like ListMLE(k=10).") from error
    if not isinstance(tree, ast.Call | ast.Name):
        raise ArgumentError(f"{text!r} is not a loss. Write it like ListMLE(k=10).")
    loss = _value(tree, text)
    assert isinstance(loss, Loss)
    return loss


def loss_names() -> list[str]:
    """Return the names of all losses, including user-defined ones.

    Example:
        >>> "ListMLE" in loss_names()
        True
    """
    return sorted(name for name, kind in Loss.REGISTRY.items() if not inspect.isabstract(kind))


def _value(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Name):
        return _build(node.id, (), {}, text)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        positional = [_value(argument, text) for argument in node.args]
        named = {keyword.arg or "**": _value(keyword.value, text) for keyword in node.keywords}
        return _build(node.func.id, positional, named, text)
    try:
        return ast.literal_eval(node)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"{ast.unparse(node)!r} in {text!r} is not a valid value. "
            "Give numbers, strings, tuples or losses."
        ) from error


def _build(name: str, positional: Any, named: dict[str, Any], text: str) -> Loss:
    names = loss_names()
    if name not in names:
        name = _BY_LOWER.get(name.lower(), name)
    if name not in names:  # abstract losses are registered, too
        aliases = {alias: f"{alias} ({meant})" for alias, meant in _ALIASES.items()}
        raise unknown_name("loss", name, aliases | {each: each for each in names})
    try:
        return Loss.REGISTRY[name](*positional, **named)
    except TypeError as error:
        known = ", ".join(field.name for field in fields(Loss.REGISTRY[name])) or "none"
        raise ArgumentError(f"{text!r} is not valid: {error}. Its parameters: {known}.") from error
