import numpy as np
import pytest

from models.core.vectors import Linear
from models.online.model import Model
from models.text.analysis import Analysis
from service.topics.decisions.registry import Registry
from service.topics.published import PublishedModel
from service.topics.settings import TopicSettings

NAN = float("nan")
FINE = Linear("presence", np.empty(0, np.uint64), np.empty(0, np.float32), 0.0)


def published(version: int, low: float, high: float) -> PublishedModel:
    return PublishedModel("crude", "b", version, 0, TopicSettings(created_ms=0), Model(FINE, low, high), 1, 1)


@pytest.mark.parametrize(("low", "high"), [(NAN, 1.0), (0.0, NAN)])
def test_a_threshold_that_is_no_number_is_refused_and_what_was_served_stays(low: float, high: float) -> None:
    serving = Registry(Analysis())
    serving.put(published(1, 0.0, 1.0))
    with pytest.raises(ValueError, match="must be a number"):
        serving.put(published(2, low, high))
    with pytest.raises(ValueError, match="must be a number"):
        serving.load([published(2, low, high)])
    assert serving.get("crude").version == 1
