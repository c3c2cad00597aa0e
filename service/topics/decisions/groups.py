"""Groups of topics of which one may accept a document (models/goals/one_of.py), decided after models and rules.

To decide for one topic of a group takes the verdicts of all, whichever a request names. A topic is in one group at
most, since its group is a setting of its own. Two topics do not name the same group with different rules, unless two
processes take such settings at the same moment: until one is changed, that group is at most one, with the wider margin.
A group of one topic decides nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from models.goals import one_of
from models.goals.one_of import Candidate
from service.errors import BadInput, FieldError
from service.schemas import Decision, Group

if TYPE_CHECKING:
    from service.topics.decisions.deciding import TopicVerdict


class OneOf(NamedTuple):
    """Topics of which at most one, or exactly one, may accept."""

    topics: tuple[str, ...]
    exactly: bool
    margin: float

    @classmethod
    def of(cls, settings: Mapping[str, Group]) -> "OneOf":
        """The group that these topics form."""
        exactly = all(group.rule == "exactly_one" for group in settings.values())
        return cls(tuple(sorted(settings)), exactly, max(group.margin for group in settings.values()))

    def decisions(self, rows: Sequence[Candidate]) -> dict[str, Decision]:
        """The decision of each of these topics as one of the group."""
        if len(rows) < 2:
            return {row.topic: row.decision for row in rows}
        return one_of.decide(rows, self.exactly, self.margin)

    def decide(self, verdicts: Mapping[str, "TopicVerdict"]) -> dict[str, "TopicVerdict"]:
        """The verdicts of its topics, those changed that may not stand."""
        own = {topic: verdict for topic in self.topics if (verdict := verdicts.get(topic))}
        decided = self.decisions([Candidate(t, v.decision, v.probability, bool(v.rule)) for t, v in own.items()])
        return {
            topic: verdict if verdict.decision == decided[topic] else verdict._replace(group=decided[topic])
            for topic, verdict in own.items()
        }


class TopicGroups:
    """The groups of all topics that are in one. The table is replaced as a whole, so that readers need no lock."""

    def __init__(self) -> None:
        self._settings: dict[str, Group] = {}

    def put(self, groups: Mapping[str, Group | None]) -> None:
        """Sets the groups of these topics; None removes a topic from the one it was in."""
        joined = {topic: group for topic, group in groups.items() if group}
        if joined or not self._settings.keys().isdisjoint(groups):
            self._settings = {topic: group for topic, group in self._settings.items() if topic not in groups} | joined

    def among(self, topics: Collection[str] | None) -> list[OneOf]:
        """The groups that any of the topics (None: all) is in, in order of name."""
        settings = self._settings
        if not settings:  # the usual case, and this is called for each batch
            return []
        named = settings.values() if topics is None else [settings[topic] for topic in topics if topic in settings]
        names = sorted({group.name for group in named})
        return [OneOf.of({t: group for t, group in settings.items() if group.name == name}) for name in names]

    def with_topic(self, topic: str, group: Group) -> OneOf:
        """The group as it would be if the topic were in it with these settings."""
        others = {t: other for t, other in self._settings.items() if other.name == group.name and t != topic}
        return OneOf.of(others | {topic: group})

    def check(self, topic: str, group: Group | None) -> None:
        """Raises `BadInput` if another topic is in a group of that name with another rule or margin."""
        for other, theirs in sorted(self._settings.items()):
            if group and other != topic and theirs.name == group.name and theirs != group:
                detail = (
                    f"Topic {other!r} is in this group as {theirs.rule} with margin {theirs.margin:g}; give the same, "
                    "or choose another group."
                )
                raise BadInput(
                    "This group has another rule or margin already.", [FieldError(pointer="/group", detail=detail)]
                )


def decide_together(
    groups: Sequence[OneOf], verdicts: Sequence["TopicVerdict"], wanted: Collection[str] | None
) -> list["TopicVerdict"]:
    """The verdicts on a document, those of topics in these groups made together. Only those that are wanted are left,
    in their order; None: all, in order of name."""
    by_topic = {verdict.topic.name: verdict for verdict in verdicts}
    for group in groups:
        by_topic |= group.decide(by_topic)
    if wanted is None:
        return [by_topic[topic] for topic in sorted(by_topic)]
    return [verdict for topic, verdict in by_topic.items() if topic in wanted]
