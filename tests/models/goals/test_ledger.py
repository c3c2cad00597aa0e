"""Which judgements are evidence of how a filter does now."""

import numpy as np

from models.core.vectors import Bag
from models.goals.ledger import Ledger
from models.goals.promises import Targets
from models.goals.reporting.report import report
from models.goals.reporting.volume import StreamCounts
from models.learners.documents import Background
from models.online.model import Example, Spec
from models.online.trainer import Trainer

RANDOM = np.random.default_rng(11)
GOAL = Targets(min_precision=0.9)


def words() -> Bag:
    features = np.unique(RANDOM.integers(1, 1 << 63, 30, dtype=np.uint64))
    return Bag(features, np.ones(len(features), np.float32), np.ones(len(features), np.float32))


def test_a_filter_that_does_well_has_not_become_worse() -> None:
    ledger = Ledger()
    for i in range(400):
        ledger.add(words().features, i % 20 != 0, "shown", 0.0, accepted=True)
    assert ledger.last_change() == 0
    assert ledger.window(np.zeros(400)).current.all()


def test_what_was_judged_before_it_became_worse_is_no_evidence() -> None:
    ledger = Ledger()
    for i in range(400):
        ledger.add(words().features, i < 300 or i % 2 == 0, "shown", 0.0, accepted=True)
    assert 290 <= ledger.last_change() <= 310
    judged = ledger.window(np.zeros(350), ledger.last_change())
    assert not judged.current[:200].any()
    assert judged.current[-80:].all()


def test_the_order_of_judgements_is_no_change_but_that_of_documents_is() -> None:
    """Half of what comes is relevant, all the time; of each hundred that came together, or of all, the relevant are
    judged first. Of those that came last, most are irrelevant: that is a change in whatever order they are judged."""
    together, sorted_, worse = Ledger(), Ledger(), Ledger()
    order = sorted(range(400), key=lambda i: i % 2)
    for i in order:
        together.add(words().features, i % 2 == 0, "shown", 0.0, accepted=True, arrived=1000 + i // 100)
        sorted_.add(words().features, i % 2 == 0, "shown", 0.0, accepted=True, arrived=1000 + i)
        worse.add(words().features, i % 2 == 0 and i < 300, "shown", 0.0, accepted=True, arrived=1000 + i)
    assert (together.last_change(), sorted_.last_change()) == (0, 0)
    assert 1290 <= worse.last_change() <= 1310
    assert np.count_nonzero(worse.window(np.zeros(400), worse.last_change()).current) == 1400 - worse.last_change()


def test_finds_among_the_rejected_are_errors_too() -> None:
    ledger = Ledger()
    for i in range(400):
        ledger.add(words().features, i >= 300 and i % 2 == 0, "audit", 0.01, accepted=False)
    assert 290 <= ledger.last_change() <= 310


def test_near_duplicates_of_one_mistake_are_one_mistake() -> None:
    ledger, again = Ledger(), words().features
    for i in range(400):
        ledger.add(again if i >= 300 else words().features, i < 300, "shown", 0.0, accepted=True)
    assert ledger.last_change() == 0


def test_relevant_documents_that_begin_to_score_too_low_are_a_change_though_nothing_was_decided_wrongly() -> None:
    random, ledger, alarms = np.random.default_rng(3), Ledger(), 0
    for i in range(400):
        ledger.add(words().features, i % 2 == 0, "shown", 0.0, accepted=False, arrived=1000 + i)
    steady = random.random(400)
    faded = np.where(np.arange(400) >= 300, steady / 4, steady)
    assert ledger.last_change() == 0
    assert ledger.faded_since(steady, 0.3) == 0
    assert 1280 <= ledger.faded_since(faded, 0.3) <= 1320
    assert ledger.faded_since(steady[-50:], 2.0) == 0
    for _ in range(200):
        alarms += ledger.faded_since(random.random(400), 0.3) > 0
    assert alarms <= 5


def test_a_topic_that_abstains_from_what_has_changed_notices() -> None:
    """Relevant documents have eight of twelve words, irrelevant ones up to three; later relevant ones have three, too.
    They are shown, and judged, but not accepted; no decision was wrong."""
    topical = np.unique(RANDOM.integers(1, 1 << 63, 12, dtype=np.uint64))

    def document(n: int) -> Bag:
        features = np.unique(np.concatenate([words().features, RANDOM.choice(topical, n, replace=False)]))
        return Bag(features, np.ones(len(features), np.float32), np.ones(len(features), np.float32))

    def learned(after: int) -> Trainer:
        trainer = Trainer(Spec(goal=GOAL))
        for i in range(300 + after):
            relevant = i % 2 == 0
            bag = document(i % 4 if not relevant else 8 if i < 300 else 3)
            trainer.learn(Example(f"d{i}", relevant, bag, "shown", 0.0, relevant and 20 < i < 300, i + 1))
        return trainer

    steady = learned(0).model(Background()).evidence
    changed = learned(40).model(Background()).evidence
    assert steady.worse_for == 0
    assert 20 <= changed.worse_for <= 60


def test_a_topic_whose_reader_turned_away_promises_nothing_and_says_why() -> None:
    """Documents of one kind are wanted, until they are not: what was promised is at risk, and nothing is accepted on
    the strength of the past."""
    wanted = words().features[:12]
    trainer = Trainer(Spec("wh", {}, None, GOAL))

    def document(about: bool) -> Bag:
        rest = words().features[:18]
        features = np.unique(np.concatenate((wanted, rest)) if about else rest)
        return Bag(features, np.ones(len(features), np.float32), np.ones(len(features), np.float32))

    for i in range(200):
        trainer.learn(Example(str(i), i % 2 == 0, document(i % 2 == 0), "shown", 0.0, accepted=i % 2 == 0))
    before = trainer.model(Background())
    assert before.evidence.certified
    for i in range(200, 240):
        trainer.learn(Example(str(i), False, document(True), "shown", 0.0, accepted=True))
    after = trainer.model(Background())
    assert 30 <= after.evidence.worse_for <= 45
    assert after.accept_above > before.accept_above
    reported = report(GOAL, after.evidence, StreamCounts(), StreamCounts())
    assert reported is not None
    assert reported.state == "at_risk"
    assert "has become worse" in reported.detail


def test_how_often_people_look_at_what_is_accepted_is_told_from_what_was_accepted_by_then() -> None:
    ledger = Ledger()
    assert ledger.watch() == (0, 0.0)
    for accepted, after in [(True, 0), (True, 30), (True, 30), (False, 90), (True, 70)]:
        ledger.add(words().features, True, "shown", 0.0, accepted=accepted, accepted_before=after)
    ledger.add(words().features, True, "audit", 0.01, accepted=False, accepted_before=95)
    assert ledger.watch() == (70, 35.0)
