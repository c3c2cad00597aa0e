"""Near-duplicates, put into a corpus: some documents come again soon after, with a few words left out, as on a newswire
where a story is sent once more with a correction. What follows the stream is measured by one document of each kind:
else one mistake would count as four, and chance no longer explain it."""

import numpy as np

from models.core.measures import Bools
from models.text.analysis import Analysis, Document, bags
from models.text.minhash import Groups
from scripts.common.corpus import Corpus
from scripts.evaluation.duplicates import retold

COPIES = 3  # of each document that is repeated: it comes four times
WITHIN = 300  # documents
LEFT_OUT = 0.05  # share of the words


def with_duplicates(corpus: Corpus, share: float, seed: int = 0) -> Corpus:
    """The corpus in which this share of the documents comes four times."""
    random = np.random.default_rng(seed)
    placed: list[tuple[float, int, Document]] = []
    for i, document in enumerate(corpus.documents):
        placed.append((float(i), i, document))
        if random.random() < share:
            # A copy of a training document stays among them, and so do the others.
            end = corpus.train if i < corpus.train else len(corpus.documents)
            for _ in range(COPIES):
                at = min(i + float(random.uniform(1, WITHIN)), end - 0.5)
                placed.append((at, i, retold(document, LEFT_OUT, random)))
    placed.sort(key=lambda one: one[0])
    train = sum(i < corpus.train for _, i, _ in placed)
    documents, topics = [document for _, _, document in placed], [corpus.topics[i] for _, i, _ in placed]
    return Corpus(f"{corpus.name}, {share:.0%} four times", documents, topics, train)


def kinds(corpus: Corpus) -> Bools:
    """Of the documents that follow the stream, those that are not near an earlier one of them."""
    groups = Groups()
    read = bags(corpus.documents[corpus.train :], Analysis())
    for i in range(len(read)):
        groups.add(read[i][0])
    return np.equal(groups.group, np.arange(len(read)))
