"""The public contract of what flows through, as types."""

from datetime import datetime

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
