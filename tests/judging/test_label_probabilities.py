"""The probabilities of labels, from the tokens of an answer."""

import pytest

from podium.judging.models.answer_parsing import parse_answer
from podium.judging.models.chat_reply import ChatReply, TokenChoice, label_probabilities
from podium.judging.models.rubric import read_rubric

RUBRIC = read_rubric("grades")
CONTENT = '{\n  "grade": 2\n}'
OBJECT = ["{", "\n ", ' "', "gr", "ade", '":', " ", "2", "\n", "}"]


def found(content: str, tokens: list[str]) -> dict[str, float]:
    """Every "2" may also be a 1; no other token has an alternative."""
    choices = tuple(
        TokenChoice(token, {"2": 0.6, "1": 0.2, "x": 0.2} if token == "2" else {token: 1.0})
        for token in tokens
    )
    reply = ChatReply(content, False, 1, 1, False, choices, "model")
    return label_probabilities(reply, RUBRIC.labels, parse_answer(content, RUBRIC).position)


@pytest.mark.parametrize(
    "tokens",
    [
        OBJECT,
        ["\n", "```", "json", "\n", *OBJECT, "\n", "```", ""],  # as llama.cpp's server writes it
        ["<think>", "1", " or ", "3", "?", "</think>", *OBJECT],
        ["\\xe2", "\\x80", *OBJECT],  # a character in pieces
    ],
)
def test_tokens_beyond_the_content_do_not_move_the_label(tokens):
    assert found(CONTENT, tokens) == pytest.approx({"0": 0, "1": 0.25, "2": 0.75, "3": 0})


def test_tokens_of_another_text_say_nothing():
    assert found(CONTENT, ["{", '"grade"', ":", "2", "}"]) == {}
