"""Words of the API and the log that pages show, such as roles and states: how people read them."""

from __future__ import annotations

from podium.studio.messages import Message

_MESSAGES = (
    # Roles
    Message("assessor"),
    Message("manager"),
    Message("owner"),
    # Jobs, runs of models and deliveries
    Message("waiting"),
    Message("running"),
    Message("done"),
    Message("failed"),
    Message("cancelled"),
    Message("stopped"),
    Message("sent"),
    # Queries
    Message("open"),
    Message("not started"),
    Message("withdrawn"),
    # Training
    Message("passed"),
    Message("allowed"),
    # How left compares with right, and what else was answered
    Message("much better than"),
    Message("better than"),
    Message("as good as"),
    Message("about the same as"),
    Message("worse than"),
    Message("much worse than"),
    Message("skipped"),
    # The usual grades
    Message("bad"),
    Message("fair"),
    Message("good"),
    Message("excellent"),
    Message("perfect"),
    # What jobs report
    Message("added"),
    Message("queries"),
    Message("rows"),
    Message("bytes"),
    Message("gold"),
    Message("judged by"),
    # Colours of grades
    Message("red"),
    Message("orange"),
    Message("yellow"),
    Message("green"),
    Message("teal"),
    Message("blue"),
    Message("purple"),
    Message("grey"),
)
WORDS = {str(message): message for message in _MESSAGES}
"""To each word of the API its message."""

SKIP_REASONS = (
    Message("I cannot tell"),
    Message("I do not know enough about this topic"),
    Message("A document is in a language I cannot read"),
    Message("A document is broken or missing"),
    Message("Other"),
)
"""What can be said when a task is skipped. The log has it in English, with a comment after it."""
