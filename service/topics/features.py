"""The features of a text as the log keeps them: words, counts, and the idf in force."""

import numpy as np

from models.text.analysis import Analysis, bags, terms
from service.store import codec
from service.topics.background import Epoch

MAX_TERMS = 2000  # distinct terms of a judged document; one of ten pages has some hundred


def log_features(title: str, text: str, analysis: Analysis, epoch: Epoch) -> bytes:
    """The packed features of a text; of a very long one the weightiest, so that a log of such texts stays bounded."""
    features, counts = bags([(title, text)], analysis)[0]
    idf = epoch.frequencies.idf(features)
    kept = np.sort(np.argsort(-counts * idf, kind="stable")[:MAX_TERMS])
    words = terms(title, text, analysis)
    canonical = [words[feature].canonical for feature in features[kept].tolist()]
    return codec.pack_bag(canonical, counts[kept], idf[kept])
