"""What a goal would cost, shown when it is set. The goal is set in any case, even if working it out takes too long."""

import asyncio

from service.errors import ServiceError
from service.feedback.preview import Previews
from service.schemas import Goal, NewTopic, TopicChange
from service.schemas.metrics import DecisionCounts, PreviewRequest
from service.sentences import number_of
from service.topics.published import PublishedModel

MAX_S = 5.0  # to find out; a long log takes seconds to fold, and the change itself folds it again


class GoalCosts:
    def __init__(self, previews: Previews) -> None:
        self._previews = previews

    async def of_new(self, published: PublishedModel, new: NewTopic) -> list[str]:
        """Warnings about the goal of a topic that was just created."""
        if not new.goal.asks:
            return []
        return await self._warnings(published.topic, PreviewRequest(goal=Goal(), limit=0), is_set=True)

    async def of_change(self, published: PublishedModel, change: TopicChange) -> list[str]:
        """Warnings about a change of a topic's goal, before it is made."""
        goal = change.goal if "goal" in change.model_fields_set else None
        if not goal or not goal.asks or goal == published.settings.goal:
            return []
        named = change.model_fields_set & PreviewRequest.model_fields.keys()
        asked = PreviewRequest.model_validate({name: getattr(change, name) for name in named} | {"limit": 0})
        return await self._warnings(published.topic, asked, is_set=False)

    async def _warnings(self, topic: str, other: PreviewRequest, is_set: bool) -> list[str]:
        try:
            async with asyncio.timeout(MAX_S):
                compared = await self._previews.cost(topic, other)
        except TimeoutError:
            return ["It takes too long to work out what this goal costs; a preview shows it."]
        except ServiceError:
            return []  # the change itself will say what is wrong
        before, after = (compared.after, compared.before) if is_set else (compared.before, compared.after)
        return [_sentence(compared.documents, before, after)] if _costs(before, after) else []


def _costs(before: DecisionCounts, after: DecisionCounts) -> bool:
    return after.accepted < before.accepted or after.abstained > before.abstained


def _sentence(documents: int, before: DecisionCounts, after: DecisionCounts) -> str:
    return (
        f"With this goal, of the last {number_of(documents, 'document')} {after.accepted:,} would be accepted instead "
        f"of {before.accepted:,}, and {after.abstained:,} left to you instead of {before.abstained:,}."
    )
