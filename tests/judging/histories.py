"""Random histories of a session: several people, slips, ties, marks and undos."""

from podium.judging import Grade, Mark, Outcome, Overlap, Session, Verdict
from podium.judging.algorithms import ALGORITHMS
from podium.judging.entries import Undo


def random_session(random):
    """A session with random settings and no more than a dozen items."""
    items = [f"d{number}" for number in range(random.randint(1, 12))]
    random.shuffle(items)
    overlap = Overlap(random.random(), random.randint(1, 3)) if random.random() < 0.3 else None
    return Session(
        items,
        random.randint(1, 12),
        algorithm=random.choice([*sorted(ALGORITHMS)] * 2 + ["careful"]),
        random_state=random.randint(0, 3),
        ordered=random.random() < 0.5,
        overlap=overlap,
        budget=random.randint(0, 30),
    )


def random_entry(random, session, noise=0.2):
    """Mostly a verdict on an open pair; now and then something nobody asked for."""
    assessor = random.choice(["ann", "bob", "cem"])
    chance = random.random()
    if chance < 0.1 and session.log:
        return Undo(random.randrange(len(session.log)), assessor)
    if chance < 0.13:
        return Grade(random.choice(session.items), random.randint(0, 4), assessor)
    if chance < 0.17:
        return Mark(random.choice(session.items), assessor)
    pairs = session.open_pairs()
    if (chance < 0.25 or not pairs) and len(session.items) > 1:
        left, right = random.sample(session.items, 2)
    elif pairs:
        left, right = random.choice(pairs)
    else:
        return Mark(random.choice(session.items), assessor)
    outcome = Outcome.LEFT if left < right else Outcome.RIGHT
    if random.random() < noise:
        outcome = random.choice(list(Outcome))
    return Verdict(left, right, outcome, assessor)


def replayed(session, log):
    """The same session, opened anew with some log."""
    return Session(
        session.items,
        session.k,
        algorithm=session.algorithm,
        random_state=session.random_state,
        ordered=session.ordered,
        overlap=session.overlap,
        budget=session.budget,
        log=log,
    )


def state(session):
    """All that anyone can see of a session."""
    return (
        session.open_pairs(),
        session.open_pairs("ann"),
        session.done,
        session.bad,
        session.result(),
        session.contradictions(),
        session.expected_left(draws=1),
    )
