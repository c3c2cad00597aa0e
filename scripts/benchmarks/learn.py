"""One judgement learned, and a log folded again.

A judgement costs all that happens before the next document is decided: the update, the pocket's check about every ten
judgements, and new thresholds, chosen on all judged documents and 1,000 unjudged ones. River and scikit-learn have the
update; thresholds are chosen from their scores in the same way (but without a pocket). They get ready-made vectors;
Sluice starts from what its log keeps, counts and idf. River's LinearRegression with SGD at half our rate is the same
learner as ours.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from models.core.measures import Bools
from models.core.vectors import Bag, Reals
from models.core.views import view
from models.goals import thresholds
from models.learners.documents import Background
from models.online.model import Example, Spec
from models.online.trainer import Trainer, fold
from models.text.analysis import Bags, bags
from scripts.benchmarks.contest import (
    Contestant,
    Seconds,
    Turn,
    Work,
    in_a_process,
    quantiles,
    rates,
    take_turns,
    timed,
    times_faster,
)
from scripts.benchmarks.topics import PLAIN, TopicMaker, counted
from scripts.common.corpus import SEED, load

BACKGROUND_SIZE = 1000  # unjudged documents
TURN_SIZE = 10  # judgements
RELEVANT = 0.3  # share of the judged documents: people mostly judge what was accepted
SCALE = thresholds.Scale(0.0, 1.0)
TIMED = 20  # judgements at each length of the log


class Sizes(NamedTuple):
    """How much to measure."""

    corpus: Path | None
    generated: int
    judgements: int = 300
    lengths: Sequence[int] = (10, 30, 100, 300, 1000, 3000, 5000)
    peers: bool = True


class JudgedTopic(NamedTuple):
    """A topic's judgements in order, and documents that are not judged."""

    examples: list[Example]
    unjudged: list[Bag]

    @property
    def relevant(self) -> Bools:
        return np.array([example.relevant for example in self.examples])

    @property
    def bags(self) -> list[Bag]:
        return [example.bag for example in self.examples]


def measure(sizes: Sizes) -> dict[str, Any]:
    works: dict[str, type[LearnWork]] = {"sluice": SluiceLearner}
    works |= {"river": RiverLearner, "scikit-learn": ScikitLearnLearner} if sizes.peers else {}
    with ExitStack() as stack:
        contestants = {name: stack.enter_context(Contestant(work, sizes)) for name, work in works.items()}
        taken = take_turns(contestants, sizes.judgements // TURN_SIZE)
        facts = {name: contestant.facts() for name, contestant in contestants.items()}
    return {
        "judgements": sizes.judgements,
        "background": BACKGROUND_SIZE,
        "one": {name: rates(turns) | facts[name] for name, turns in taken.items()},
        "times_faster": {name: times_faster(taken["sluice"], turns) for name, turns in taken.items()},
        "by_length": in_a_process(by_length, sizes),
    }


def judged(sizes: Sizes, n: int) -> JudgedTopic:
    """n judgements on the tenth largest kind of document, as many of them relevant as when people judge; if there are
    not enough documents, they come again as new ones."""
    corpus = load(sizes.corpus, sizes.generated)
    kinds = list(TopicMaker(corpus).kinds(10))
    relevant = set(kinds[-1].tolist())
    counts = bags(corpus.documents, PLAIN)
    idf = counted(counts).idf(counts.features)
    rng = np.random.default_rng(SEED)
    order = rng.permutation(len(counts)).tolist()
    unjudged = min(BACKGROUND_SIZE, len(order) // 2)
    background, rest = order[:unjudged], order[unjudged:]
    yes = [i for i in rest if i in relevant] or sorted(relevant)
    no = [i for i in rest if i not in relevant]
    examples = []
    for k in range(n):
        relevant_next = rng.random() < RELEVANT
        chosen = yes if relevant_next else no
        i = chosen[k % len(chosen)]
        examples.append(Example(f"judged-{k}", relevant_next, _bag(counts, idf, i)))
    return JudgedTopic(examples, [_bag(counts, idf, i) for i in background])


def by_length(sizes: Sizes) -> list[dict[str, float]]:
    """The cost of one more judgement, and of folding all of them, as the log grows."""
    topic = judged(sizes, max(sizes.lengths) + TIMED)
    background = Background(topic.unjudged)
    fold(Spec(), topic.examples[:30], background)  # warms up
    rows = []
    for n in sizes.lengths:
        trainer = Trainer(Spec())
        for example in topic.examples[:n]:
            trainer.learn(example)
        times = [timed(_learn, trainer, example, background) for example in topic.examples[n : n + TIMED]]
        refold = min((timed(fold, Spec(), topic.examples[:n], background) for _ in range(3)), key=lambda s: s.cpu)
        median = Seconds(*np.median(times, axis=0).tolist())
        rows.append(
            {
                "judgements": n,
                "one_ms": 1e3 * median.wall,
                "one_cpu_ms": 1e3 * median.cpu,
                "refold_ms": 1e3 * refold.wall,
                "refold_cpu_ms": 1e3 * refold.cpu,
            }
        )
    return rows


class LearnWork(Work):
    """Learns TURN_SIZE judgements a turn, and begins again at the end of the log."""

    def __init__(self, sizes: Sizes) -> None:
        self.judged = judged(sizes, sizes.judgements)
        self._times: list[Seconds] = []
        self._at = 0
        self.begin()

    def begin(self) -> None:
        """Forgets all judgements."""

    def learn(self, i: int) -> None:
        """Learns the i-th judgement and chooses thresholds."""

    def turn(self) -> Turn:
        if self._at + TURN_SIZE > len(self.judged.examples):
            self._at = 0
            self.begin()
        times = [timed(self.learn, self._at + i) for i in range(TURN_SIZE)]
        self._at += TURN_SIZE
        self._times += times
        return Turn(TURN_SIZE, Seconds(*np.sum(times, axis=0).tolist()))

    def facts(self) -> dict[str, float]:
        return quantiles(self._times[TURN_SIZE:])


class SluiceLearner(LearnWork):
    def begin(self) -> None:
        self._trainer = Trainer(Spec())
        self._background = Background(self.judged.unjudged)

    def learn(self, i: int) -> None:
        _learn(self._trainer, self.judged.examples[i], self._background)


class RiverLearner(LearnWork):
    def begin(self) -> None:
        from river import linear_model, optim

        self._model = linear_model.LinearRegression(optim.SGD(0.25))
        self._unjudged = [_words(bag) for bag in self.judged.unjudged]
        self._documents = [_words(bag) for bag in self.judged.bags]

    def learn(self, i: int) -> None:
        self._model.learn_one(self._documents[i], float(self.judged.relevant[i]))
        predict = self._model.predict_one
        scores = np.array([predict(x) for x in self._documents[: i + 1]])
        _cut(scores, self.judged.relevant[: i + 1], np.array([predict(x) for x in self._unjudged]))


class ScikitLearnLearner(LearnWork):
    def begin(self) -> None:
        from sklearn.linear_model import SGDClassifier

        every = [*self.judged.bags, *self.judged.unjudged]
        features, at = np.unique(np.concatenate([bag.features for bag in every]), return_inverse=True)
        values = np.concatenate([view("tfidf", bag).values for bag in every])
        starts = np.cumsum([0, *(len(bag.features) for bag in every)])
        X = sp.csr_matrix((values, at, starts), shape=(len(every), len(features)))
        self._documents, self._unjudged = X[: len(self.judged.examples)], X[len(self.judged.examples) :]
        self._model = SGDClassifier(random_state=SEED)

    def learn(self, i: int) -> None:
        relevant = self.judged.relevant
        self._model.partial_fit(self._documents[i], relevant[i : i + 1], classes=[False, True])
        scores = self._model.decision_function(self._documents[: i + 1])
        _cut(scores, relevant[: i + 1], self._model.decision_function(self._unjudged))


def _learn(trainer: Trainer, example: Example, background: Background) -> None:
    trainer.learn(example)
    trainer.model(background)


def _cut(scores: Reals, relevant: Bools, unjudged: Reals) -> None:
    thresholds.choose(scores, relevant, unjudged, np.ones(len(unjudged), np.bool_), SCALE)


def _bag(counts: Bags, idf: Any, i: int) -> Bag:
    part = slice(counts.indptr[i], counts.indptr[i + 1])
    return Bag(counts.features[part], counts.counts[part], idf[part])


def _words(bag: Bag) -> dict[int, float]:
    return dict(zip(bag.features.tolist(), view("tfidf", bag).values.tolist(), strict=True))
