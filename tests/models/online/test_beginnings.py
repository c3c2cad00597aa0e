"""How people begin: ten relevant documents and nothing else, before there is a stream."""

import numpy as np
import pytest

from models.core.vectors import Bag
from models.core.views import view
from models.learners.documents import Background
from models.online.model import Example, Model, Spec
from models.online.trainer import fold
from models.text.analysis import Analysis, bags
from models.text.idf import Frequencies
from scripts.common.corpus import Corpus, generate

GIVEN, TOPICS, PASSING = 10, 8, 400


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return generate(4000)


@pytest.fixture(scope="module")
def documents(corpus: Corpus) -> list[Bag]:
    counted, prior = bags(corpus.documents, Analysis()), Frequencies.prior()
    return [Bag(features, counts, prior.idf(features)) for features, counts in map(counted.__getitem__, range(4000))]


def share_above(model: Model, threshold: float, passing: list[Bag]) -> float:
    return float(np.mean([model.linear.score(view(model.linear.view, bag)) > threshold for bag in passing]))


def test_ten_relevant_documents_let_at_most_a_tenth_of_a_stream_through(corpus: Corpus, documents: list[Bag]) -> None:
    shares = []
    for topic in corpus.largest(GIVEN, 1)[:TOPICS]:
        relevant = corpus.relevant(topic)
        given = np.flatnonzero(relevant)[:GIVEN]
        model = fold(Spec(), [Example(str(i), True, documents[i]) for i in given], Background())
        passing = [documents[i] for i in np.flatnonzero(~relevant)[-PASSING:]]
        shares.append(share_above(model, model.accept_above, passing))
        of_topic = [documents[i] for i in np.flatnonzero(relevant)[GIVEN:]]
        assert share_above(model, model.reject_below, of_topic) > share_above(model, model.reject_below, passing)
    assert len(shares) == TOPICS
    assert max(shares) <= 0.1
