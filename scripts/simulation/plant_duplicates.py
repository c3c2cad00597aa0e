"""Near-duplicates, planted in a corpus: some documents come again soon after, with a few words left out, as on a
newswire that sends a story once more with a correction.

Of the documents that follow the stream, only the first of each group of near-duplicates is measured: otherwise one
mistake would count as four, and chance would no longer explain it."""

import numpy as np

from models.core.measures import Bools
from models.text.analysis import Analysis, Document, bags
from models.text.minhash import Groups
from scripts.common.corpus import Corpus
from scripts.evaluation.duplicates import retold

COPIES = 3  # of each document that is repeated: it comes four times
MAX_DISTANCE = 300  # documents between a document and its copy
LEFT_OUT = 0.05  # share of the words


def with_duplicates(corpus: Corpus, share: float, seed: int = 0) -> Corpus:
    """The corpus in which this share of the documents comes four times."""
    random = np.random.default_rng(seed)
    placed: list[tuple[float, int, Document]] = []
    for i, document in enumerate(corpus.documents):
        placed.append((float(i), i, document))
        if random.random() < share:
            # copies of a training document stay among the training documents
            end = corpus.train if i < corpus.train else len(corpus.documents)
            for _ in range(COPIES):
                at = min(i + float(random.uniform(1, MAX_DISTANCE)), end - 0.5)
                placed.append((at, i, retold(document, LEFT_OUT, random)))
    placed.sort(key=lambda entry: entry[0])
    train = sum(i < corpus.train for _, i, _ in placed)
    documents, topics = [document for _, _, document in placed], [corpus.topics[i] for _, i, _ in placed]
    return Corpus(f"{corpus.name}, {share:.0%} four times", documents, topics, train)


def unrepeated(corpus: Corpus) -> Bools:
    """Which of the documents that follow the stream are not near-duplicates of an earlier one."""
    groups = Groups()
    counts = bags(corpus.documents[corpus.train :], Analysis())
    for i in range(len(counts)):
        groups.add(counts[i][0])
    return np.equal(groups.group, np.arange(len(counts)))
