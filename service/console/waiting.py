"""What waits for a judgement: the documents that topics have accepted or are unsure about and nobody has judged.

    newest      by the time at which they passed, over all topics
    best        by score, as the model scores them now. Scores of different topics do not compare, so over several
                topics the best of each comes first, then the second of each, and so on

Near-duplicates of a topic are one item, under the first that is shown. Of a group in which one document was judged or
skipped, the others do not come back. Each item is explained by the model as it is now, and says so if that would decide
differently.

The newest SCANNED decisions of a topic are looked at, of the first MAX_TOPICS topics.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, zip_longest
from typing import Literal, NamedTuple

from markupsafe import Markup

from service.console import words
from service.errors import NotFound
from service.schemas import ORIGIN, ClassifyOptions, Decision, Document
from service.schemas.flow import Passed
from service.sluice import Sluice
from service.topics.decisions.explain import BIAS, REST
from service.topics.decisions.results import DocumentResult
from service.topics.published import PublishedModel
from service.topics.state import TopicState

Order = Literal["newest", "best"]
Show = Literal["all", "accept", "abstain"]

MAX_TOPICS = 200
SCANNED = 1000  # decisions of a topic
CHUNK = 200  # decisions that are read together
READ_TOGETHER = 8  # topics
MAX_REASONS = 5  # words that an item names


class Copy(NamedTuple):
    """A near-duplicate, folded under the item."""

    title: str
    source: str
    link: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Item:
    topic: str
    topic_name: str
    document: str
    title: Markup
    snippet: Markup
    source: str
    author: str
    link: str | None
    at: datetime
    decision: Decision  # the one that was made
    now: Decision  # what the model decides now
    score: float
    toward: list[str]  # the words that count most
    against: list[str]
    rule: str | None
    certain: bool | None
    copies: list[Copy]

    @property
    def key(self) -> str:
        """Names the item in a page."""
        return words.key_of(self.topic, self.document)


class Waiting(NamedTuple):
    items: list[Item]
    more: bool


class _Group(NamedTuple):
    """Near-duplicates, the one that is shown first."""

    topic: PublishedModel
    first: Passed
    copies: list[Passed]


def name_of(published: PublishedModel) -> str:
    return published.settings.name.strip() or published.topic


async def waiting(sluice: Sluice, topics: Sequence[PublishedModel], order: Order, show: Show, limit: int) -> Waiting:
    """The first items that wait, and whether there are more."""
    turn = asyncio.Semaphore(READ_TOGETHER)

    async def groups_of(published: PublishedModel) -> list[_Group]:
        async with turn:
            try:
                return await _groups(sluice, published, order, show, limit + 1)
            except NotFound:  # deleted meanwhile
                return []

    by_topic = await asyncio.gather(*map(groups_of, topics[:MAX_TOPICS]))
    groups: Iterable[_Group]
    if order == "newest":
        groups = sorted(chain.from_iterable(by_topic), key=lambda group: group.first.at, reverse=True)
    else:
        groups = (group for rank in zip_longest(*by_topic) for group in rank if group)
    chosen = list(groups)
    return Waiting(await _items(sluice, chosen[:limit]), len(chosen) > limit)


async def remembered_item(sluice: Sluice, published: PublishedModel, document: str) -> Item | None:
    """The item of one document that the memory still has; None if it has not."""
    topic = published.topic
    try:
        known = await sluice.documents.find(document, ClassifyOptions(topics=[topic]), now=False)
    except NotFound:
        return None
    (explained,) = await _explained(sluice, topic, [Document(title=known.title, text=known.text, source=known.source)])
    ((decision, verdict),) = explained.decisions
    delivered = next((each.decision for each in known.decisions), decision)
    passed = Passed(
        id="",
        topic=topic,
        decision=delivered,
        score=verdict.score,
        version=published.version,
        **known.model_dump(include={"document", "title", "text", "metadata", "at", *ORIGIN}),
    )
    return _item(_Group(published, passed, []), explained)


async def _groups(sluice: Sluice, published: PublishedModel, order: Order, show: Show, wanted: int) -> list[_Group]:
    """The first groups of one topic, in order."""
    judged = await sluice.learning.read(published.topic, _judged)
    done = judged.union(await sluice.review.skipped(published))
    groups: dict[str, _Group] = {}
    cursor: str | None = None
    for _ in range(SCANNED // CHUNK):
        if order == "best":
            page = await sluice.ranking.page(published, 0, cursor, CHUNK, True)
            passed: Sequence[Passed] = page.items
            cursor = page.next
        else:
            placed = await sluice.outbox.newest(published.topic, cursor, CHUNK)
            passed = [entry.passed(published.topic) for entry in placed]
            cursor = placed[-1].place if len(placed) == CHUNK else None
        done |= {_original(each) for each in passed if each.document in done}
        for each in passed:
            if show not in ("all", each.decision):
                continue
            group = groups.setdefault(_original(each), _Group(published, each, []))
            if each.document not in {one.document for one in (group.first, *group.copies)}:
                group.copies.append(each)
        waiting = [group for original, group in groups.items() if original not in done]
        if cursor is None or len(waiting) >= wanted:
            break
    return waiting[:wanted]


def _original(passed: Passed) -> str:
    return passed.duplicate_of or passed.document


def _judged(state: TopicState) -> frozenset[str]:
    return frozenset(state.resolved.judged)


async def _items(sluice: Sluice, groups: Sequence[_Group]) -> list[Item]:
    """The groups as items, in the same order, each explained by its topic's model."""
    by_topic: dict[str, list[_Group]] = {}
    for group in groups:
        by_topic.setdefault(group.topic.topic, []).append(group)
    items: dict[int, Item] = {}
    for topic, those in by_topic.items():
        documents = [Document(title=g.first.title, text=g.first.text, source=g.first.source) for g in those]
        try:
            explained = await _explained(sluice, topic, documents)
        except NotFound:
            continue
        items |= {id(group): _item(group, result) for group, result in zip(those, explained, strict=True)}
    return [items[id(group)] for group in groups if id(group) in items]


async def _explained(sluice: Sluice, topic: str, documents: Sequence[Document]) -> list[DocumentResult]:
    return await sluice.classifier.classify_any(
        documents, ClassifyOptions(topics=[topic], explain=True, store=False), list
    )


def _item(group: _Group, explained: DocumentResult) -> Item:
    ((now, verdict),) = explained.decisions
    parts = [part for part in explained.explanations[0].contributions or () if part.term not in (BIAS, REST)]
    toward = [part.term for part in parts if part.contribution > 0]
    against = [part.term for part in parts if part.contribution < 0]
    first = group.first
    return Item(
        topic=group.topic.topic,
        topic_name=name_of(group.topic),
        document=first.document,
        title=words.marked(words.title_of(first.title, first.text), toward[:MAX_REASONS]),
        snippet=words.snippet(first.text, toward[:MAX_REASONS]),
        source=_source(first),
        author=first.author or "",
        link=_link(first),
        at=_time(first),
        decision=first.decision,
        now=now,
        score=verdict.score,
        toward=toward[:MAX_REASONS],
        against=against[:2],
        rule=verdict.rule,
        certain=first.certain,
        copies=[
            Copy(words.title_of(copy.title, copy.text), _source(copy), _link(copy), _time(copy))
            for copy in group.copies
        ],
    )


def _source(passed: Passed) -> str:
    return passed.source or ""


def _time(passed: Passed) -> datetime:
    """When it was published, if it says so and that is no later than when it came."""
    return min(words.time_in(passed.published) or passed.at, passed.at)


def _link(passed: Passed) -> str | None:
    metadata = passed.metadata or {}
    return words.link(passed.url, *(metadata.get(name) for name in words.LINK_FIELDS), passed.document, passed.source)
