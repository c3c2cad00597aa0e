"""The public contract of what flows through, as types."""

from datetime import datetime

from pydantic import Field

from service.fields import Answer
from service.schemas import Decision


class Passed(Answer):
    """A document that a topic did not reject."""

    id: str
    topic: str
    decision: Decision
    score: float
    version: int
    document: str
    title: str
    text: str
    at: datetime


class ConsumerInfo(Answer):
    name: str
    alive: bool = Field(description="Whether it has been heard of lately.")
    pending: int = Field(description="Documents that it took and has not decided yet; others will take them over.")
    started: datetime | None = Field(description="This and what follows is null once it is not alive any more.")
    documents: int | None = Field(description="Decided since it started.")
    dead: int | None = Field(description="Entries since it started that could not be decided.")
    taken_over: int | None = Field(description="Entries that others had left behind.")
    per_s: float | None = Field(description="Documents a second, over the last ten seconds of its work.")


class Flow(Answer):
    """The stream `sluice:in`, and who works on it."""

    lag: int = Field(description="Documents that no consumer has taken yet.")
    lag_s: float = Field(description="How long ago the oldest that is not decided was added; 0 if there is none.")
    pending: int = Field(description="Documents that were taken and are not decided yet.")
    dead: int = Field(description="Entries in `sluice:dead`.")
    consumers: list[ConsumerInfo]
