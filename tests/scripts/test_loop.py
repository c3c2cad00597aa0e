"""Simulated readers judge what they are shown, once, when it is due; and the loop does nothing early because it decides
many batches together. (tests/system/test_loop.py compares it with a running service.)"""

import numpy as np
import pytest

from scripts.common.corpus import Corpus, generate
from scripts.loop import loop as looping
from scripts.loop.loop import Loop
from scripts.loop.reader import ABSTAIN, ACCEPT, REJECT, Decisions, Plan, ReaderProgress, SimulatedReader
from scripts.loop.stream import Stream
from scripts.loop.topic import TopicSpec

RELEVANT = np.arange(10) % 2 == 1


def decided(*codes: int) -> Decisions:
    return np.array(codes, np.int8)


def test_what_is_shown_is_judged_once_and_in_order() -> None:
    reading = ReaderProgress(Plan.of(SimulatedReader(seeds=2), RELEVANT), RELEVANT)
    assert (reading.given, reading.begins) == ([1, 3], 4)
    reading.show(0, decided(ACCEPT, ACCEPT, REJECT, ABSTAIN, ABSTAIN, REJECT))
    assert reading.take_due(6) == {0: False, 4: False}  # 1 and 3 were given
    assert reading.take_due(6) == {}
    assert reading.take_audits([5, 2, 4]) == {2: False, 5: True}
    assert (reading.judged, reading.audited) == ([1, 3, 0, 4, 2, 5], 2)


def test_a_slow_reader_judges_later_and_all_at_the_end() -> None:
    reading = ReaderProgress(Plan.of(SimulatedReader(seeds=0, delay=3), RELEVANT), RELEVANT)
    reading.show(0, decided(ACCEPT, REJECT, ACCEPT, ACCEPT))
    assert reading.next_due == 4
    assert reading.take_due(3) == {}
    assert reading.take_due(4) == {0: False}
    assert reading.next_due == 6
    assert reading.take_due(4, all_of_them=True) == {2: False, 3: True}
    assert reading.next_due is None


def test_audits_are_looked_at_now_and_then() -> None:
    reading = ReaderProgress(Plan.of(SimulatedReader(audit_every=20), RELEVANT), RELEVANT)
    assert [n for n in range(7, 70, 7) if reading.looks_for_audits(n - 7, n)] == [21, 42, 63]


@pytest.mark.parametrize("batch", [1, 30])
@pytest.mark.parametrize(
    "reader", [SimulatedReader(), SimulatedReader(delay=40, part=0.5), SimulatedReader(early=True)]
)
def test_deciding_many_batches_together_changes_nothing(
    reader: SimulatedReader, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generated = generate(600)
    topics = [frozenset({"t"} if name in ("theme-0", "theme-1", "theme-2") else ()) for (name,) in generated.topics]
    stream = Stream(Corpus("generated", generated.documents, topics, 500), batch)
    relevant = stream.corpus.relevant("t")

    def course() -> tuple[list[int], list[int], float]:
        loop = Loop(stream, relevant, TopicSpec("t", "", audit=0.05), Plan.of(reader, relevant))
        loop.advance(500)
        return loop.reading.judged, loop.topic.decisions.tolist(), loop.topic.published.model.accept_above

    together = course()
    monkeypatch.setattr(looping, "MIN_WINDOW", 1)
    monkeypatch.setattr(looping, "MAX_WINDOW", 1)
    assert course() == together
    assert len(together[0]) > 10
