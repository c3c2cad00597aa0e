"""Warm-up: learns and decides once, and throws the result away.

Compiled kernels are loaded when they are first called, which takes up to a second; without this, the first request of
a process would have to wait for them.
"""

from dataclasses import replace

import numpy as np

from models.core.vectors import Features
from models.text.analysis import Analysis, bags
from models.text.json_shape import shape
from models.text.projection import Projection
from service.schemas import ClassifyOptions, Document, Goal
from service.store.events import Event, Head
from service.topics.background import Epoch, Sampled
from service.topics.decisions.registry import Registry
from service.topics.decisions.results import classify
from service.topics.features import log_features
from service.topics.projections import NumberedProjection
from service.topics.settings import TopicSettings
from service.topics.state import TopicState

TEXT = "rehearsal"
JUDGEMENTS = 18


def warm_up(analysis: Analysis, current: Epoch, served_weights: int) -> None:
    """Calls every kernel that a request may need; takes a second or so, so call it from a thread."""
    sample = Sampled("", *bags([("", TEXT)], analysis)[0])
    epoch = Epoch(0, current.frequencies, [sample])
    query = log_features("", TEXT, analysis, epoch)
    settings = TopicSettings(created_ms=0, goal=Goal(min_precision=0.9))
    created = Event("created", 0, 0, 1, settings=settings.model_dump_json(), features=query)
    judged = [
        Event(
            "judged",
            0,
            0,
            n,
            str(n),
            n % 2 == 0,
            log_features("", f"{TEXT} {n} {-n}", analysis, epoch),
            passed=True,
        )
        for n in range(2, 2 + JUDGEMENTS)
    ]
    state = TopicState(TEXT, Head("", judged[-1].seq, 0), [created, *judged], served_weights)
    stage = Registry(analysis)
    stage.put(state.build_model(epoch))
    epoch.projection = NumberedProjection(1, _projection(sample.features))
    stage.put(replace(state.build_model(epoch), topic=f"{TEXT} by meaning"))
    for options in (ClassifyOptions(), ClassifyOptions(topics=[TEXT])):
        classify(stage, [Document(text=TEXT)], options, epoch)
    shape(b"{}")


def _projection(features: Features) -> Projection:
    """A projection of one column, in which all terms are alike."""
    rows, scales = np.ones((len(features), 1), np.int8), np.full(len(features), 0.01, np.float32)
    return Projection(features, rows, scales, np.zeros(1, np.int32), np.ones(1, np.float32))
