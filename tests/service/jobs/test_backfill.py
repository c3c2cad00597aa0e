"""The checkpoint of a backfill: it keeps all that has been found, and is bounded."""

import json
from typing import cast

from service.jobs.backfill import MAX_HITS, MAX_TOPICS, BackfillCounts, Checkpoint, Hit, count
from service.schemas import Document
from service.topics.decisions.deciding import TopicVerdict
from service.topics.decisions.registry import ServedTopic
from service.topics.decisions.results import DocumentResult


class Named:
    def __init__(self, name: str) -> None:
        self.name = name


def accepted(document: str, *topics: str, score: float = 0.5) -> DocumentResult:
    verdicts = [TopicVerdict(cast(ServedTopic, Named(topic)), score) for topic in topics]
    return DocumentResult(document, [("accept", verdict) for verdict in verdicts])


def test_a_checkpoint_keeps_what_was_found() -> None:
    counts = BackfillCounts()
    for n in range(3 * MAX_HITS):
        counts.add(Hit(n / 7, f"d{n}", "größer", "accept" if n % 3 else "abstain"))
    saved = Checkpoint(10, 20, 30, 40, {"crude": counts})
    restored = Checkpoint.from_text(saved.to_text())
    assert restored == saved
    assert (counts.accepted, counts.abstained) == (2 * MAX_HITS, MAX_HITS)
    assert sorted(hit.document for hit in restored.counts["crude"].best) == sorted(
        f"d{n}" for n in range(2 * MAX_HITS, 3 * MAX_HITS)
    )


def test_a_checkpoint_of_an_earlier_version_has_no_counts_so_the_job_starts_over() -> None:
    assert Checkpoint.from_text(json.dumps({"read": 9, "written": 9, "documents": 1, "refused": 0})) == Checkpoint()


def test_the_first_topics_by_name_are_counted_in_full() -> None:
    counts: dict[str, BackfillCounts] = {}
    names = [f"t{n:04}" for n in range(MAX_TOPICS + 2)]
    document = Document(id="d", text="crude oil")
    for _ in range(2):
        count(counts, [document], [accepted("d", *reversed(names))])
    assert sorted(counts) == names[:MAX_TOPICS]
    assert {each.accepted for each in counts.values()} == {2}
