"""Simulated readers: what they judge, when, and whether they are right."""

from dataclasses import dataclass

import numpy as np

from models.core.measures import Bools


@dataclass(frozen=True, slots=True)
class SimulatedReader:
    everything: bool = False  # rejected documents are judged, too
    part: float = 1.0  # share of the shown documents that is judged
    delay: int = 0  # documents between showing one and its judgement
    noise: float = 0.0  # share of the judgements that are wrong
    audit: float = 0.01  # chance of a rejected document to be drawn for audit
    seeds: int = 3  # relevant documents that the topic is given at the start


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What a reader will do with each document of a stream, decided before it begins."""

    reader: SimulatedReader
    drawn: Bools  # for audit, if it is rejected
    judges: Bools  # if it is shown
    labels: Bools  # what the reader takes for relevant

    @classmethod
    def of(cls, reader: SimulatedReader, relevant: Bools, topic: str, seed: int) -> "Plan":
        random = np.random.default_rng([seed, *topic.encode()])
        drawn, judged, wrong = random.random((3, len(relevant)))
        return cls(reader, drawn < reader.audit, judged < reader.part, relevant ^ (wrong < reader.noise))


def drifting(before: Bools, after: Bools, at: int) -> Bools:
    """Relevance to a reader whose interest changes when the document at this position comes."""
    return np.concatenate((before[:at], after[at:]))
