"""Fits several topics at once by boosting: one distribution over all pairs of document and topic, one list of pivots.

    documents   those of all topics: judged for at least one, or unjudged and rejected by at least one
    y = 1       the document was judged relevant to the topic
    y = −1      it was judged irrelevant, or nobody judged it and the topic would reject it
    unknown     nobody judged it, and the topic would let it through: many of these are relevant, so the pair does not
                count (methods/boosting.py)

Sebastiani, Sperduti & Valdambrini, "An improved boosting algorithm and its application to text categorization", CIKM
2000, where every document has all its labels, so that no pair is unknown.

Each topic gets its part: its plane, and held-out scores of its own documents by fits without their fold. A fold is the
same for all topics, and near-duplicates are in one. So a topic is compared with what is served as if it were alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from models.batch import registry
from models.batch.folds import stratified_folds
from models.batch.refit import FOLDS, Dataset, Refit, scale_of, scaled, scores_of
from models.core.measures import Bools
from models.core.vectors import Bag, Linear
from models.methods import boosting, farm
from models.methods.farm import Crew
from models.methods.matrix import Examples, Labels, Progress, no_progress
from models.online.pins import PinnedTerms, applied
from models.text.minhash import Groups

MAX_PAIRS = 100_000_000  # of document and topic; each takes 8 bytes in every process


@dataclass(frozen=True, slots=True, eq=False)
class JointDataset:
    bags: Sequence[Bag]
    labels: Labels
    known: Labels
    fold: NDArray[np.int64]
    parts: Sequence[Dataset]  # of each topic, with the folds of all
    places: Sequence[NDArray[np.int64]]  # where the documents of each part are among all

    @classmethod
    def of(cls, parts: Sequence[Dataset], rejects: Sequence[Callable[[Bag], bool]], seed: int = 0) -> "JointDataset":
        """`rejects` says of each topic whether it would reject a document that nobody judged."""
        bags: dict[str, Bag] = {}
        for part in parts:
            for document, bag in zip(part.documents, part.bags, strict=True):
                bags.setdefault(document, bag)
        place = {document: j for j, document in enumerate(bags)}
        places = [np.array([place[document] for document in part.documents], np.int64) for part in parts]
        every = list(bags.values())
        labels, known = np.zeros((2, len(every), len(parts)), np.bool_)
        for i, part in enumerate(parts):
            known[places[i], i] = True
            labels[places[i], i] = part.relevant
            others = np.flatnonzero(~known[:, i]).tolist()
            known[others, i] = [rejects[i](every[j]) for j in others]
        groups = Groups()
        for bag in every:
            groups.add(bag.features)
        clusters, cluster = np.unique(groups.group, return_inverse=True)
        any_relevant = np.zeros((len(clusters), len(parts)), np.bool_)
        np.logical_or.at(any_relevant, cluster, labels)
        fold = stratified_folds(any_relevant, FOLDS, seed)[cluster]
        folded = [replace(part, fold=fold[at]) for part, at in zip(parts, places, strict=True)]
        return cls(every, labels, known, fold, folded, places)


def refit_together(
    params: Mapping[str, object],
    data: JointDataset,
    weights: int,
    terms: Sequence[PinnedTerms],
    progress: Progress = no_progress,
    crew: Crew | None = None,
) -> list[Refit]:
    """Fits boosting FOLDS + 1 times to all topics; returns the part of each. No topic may ban terms."""
    p, m = registry.parse("boosting", params), len(data.parts)
    x = Examples.of(data.bags, p.view)
    over = [PinnedTerms(tuple(f for f in one.pin if f in x.features)) for one in terms]
    scores, pinned = np.zeros((2, *data.labels.shape))

    def fitted(rows: Bools, begun: int) -> list[Linear]:
        def overall(done: float) -> None:
            progress((begun + done) / (FOLDS + 1))

        asked = x.rows(rows), data.labels[rows]
        if crew:
            planes = farm.fit(p, *asked, crew, overall, data.known[rows])
        else:
            planes = boosting.fit(p, *asked, 0, overall, data.known[rows])
        return [planes.linear(i).strongest(weights) for i in range(m)]

    for k in range(FOLDS):
        out = data.fold == k
        if out.any() and not out.all():
            rows = x.rows(out)
            for i, linear in enumerate(fitted(~out, k)):
                scores[out, i] = scores_of(linear, rows)
                pinned[out, i] = scores_of(applied(linear, over[i]), rows)
    refits = []
    for i, linear in enumerate(fitted(np.ones(x.size, np.bool_), FOLDS)):
        at, relevant = data.places[i], data.parts[i].relevant
        scale, shift = scale_of(scores[at, i], relevant)
        refits.append(Refit(scaled(linear, scale, shift), scores[at, i] * scale + shift, pinned[at, i] * scale + shift))
    return refits
