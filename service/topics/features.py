"""How this deployment analyses text, and the features of a text as the log keeps them."""

import numpy as np

from models.text.analysis import Analysis, bags, terms
from models.text.function_words import ENGLISH
from service.config import Config
from service.store import codec
from service.topics.background import Epoch

MAX_TERMS = 2000  # distinct terms of a judged document; ten pages have a few hundred


def analysis_of(config: Config) -> Analysis:
    return Analysis(
        title_weight=config.title_weight,
        stemmer=config.stemmer,
        stop_words=ENGLISH if config.stop_words else frozenset(),
        bigrams=config.bigrams,
    )


def log_features(title: str, text: str, analysis: Analysis, epoch: Epoch) -> bytes:
    """Words, counts and the idf in force, packed; of a very long text the weightiest, so that the log is bounded."""
    features, counts = bags([(title, text)], analysis)[0]
    idf = epoch.frequencies.idf(features)
    kept = np.sort(np.argsort(-counts * idf, kind="stable")[:MAX_TERMS])
    words = terms(title, text, analysis)
    canonical = [words[feature].canonical for feature in features[kept].tolist()]
    return codec.pack_bag(canonical, counts[kept], idf[kept])
