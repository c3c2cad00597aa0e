import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.core.vectors import Linear
from models.goals.thresholds import NEVER
from models.online.model import Model
from models.text.analysis import Analysis
from models.text.idf import Frequencies
from service.schemas import ClassifyOptions, Document
from service.topics.background import Epoch
from service.topics.decisions.deciding import decide_documents
from service.topics.decisions.registry import Registry
from service.topics.published import PublishedModel
from service.topics.settings import TopicSettings

NAN = float("nan")
NO_STREAM = Epoch(0, Frequencies.prior(), ())


def published(version: int, low: float, high: float, score: float = 0.0) -> PublishedModel:
    """A model that gives every document this score."""
    linear = Linear("presence", np.empty(0, np.uint64), np.empty(0, np.float32), score)
    return PublishedModel("crude", "b", version, 0, TopicSettings(created_ms=0), Model(linear, low, high), 1, 1)


@pytest.mark.parametrize(("low", "high"), [(NAN, 1.0), (0.0, NAN)])
def test_a_threshold_that_is_no_number_is_refused_and_what_was_served_stays(low: float, high: float) -> None:
    serving = Registry(Analysis())
    serving.put(published(1, 0.0, 1.0))
    with pytest.raises(ValueError, match="must be a number"):
        serving.put(published(2, low, high))
    with pytest.raises(ValueError, match="must be a number"):
        serving.load([published(2, low, high)])
    assert serving.get("crude").version == 1


@given(st.one_of(st.floats(-1e39, 1e39), st.sampled_from([NEVER, -NEVER])), st.sampled_from([-1, 0, 1]))
def test_accept_above_is_compared_exactly_although_scores_are_single(threshold: float, step: int) -> None:
    with np.errstate(over="ignore"):
        near = np.float32(threshold)
        score = np.nextafter(near, np.float32(step * np.inf)) if step else near
    if not np.isfinite(score):
        return
    registry = Registry(Analysis())
    registry.put(published(1, -NEVER, threshold, float(score)))
    ((verdict,),) = decide_documents(registry, [Document(text="oil")], ClassifyOptions(), NO_STREAM).verdicts
    assert verdict.decision == ("accept" if float(score) > threshold else "abstain")
