"""A topic's judged documents, in the order of their judgements: by slot, to be scored, and as evidence, in a ledger.

Vectors compete and thresholds are chosen on the newest of them, the window.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from models.core.measures import Bools
from models.core.names import View
from models.core.vectors import Reals
from models.goals.evidence import Evidence, JudgedWindow, collect_evidence
from models.goals.ledger import Ledger
from models.goals.promises import Targets
from models.goals.thresholds import Band
from models.learners.base import DocumentVector, Vector
from models.learners.documents import Background, Collection, DocumentWindow
from models.learners.vocabulary import Slots
from models.online import pocket
from models.online.model import Example, ModelFigures
from models.online.run import LearnerRun
from models.text import minhash


class JudgedDocuments:
    def __init__(self, views: Sequence[View]) -> None:
        self.ledger = Ledger()
        self._collection = Collection(views)
        self._numbers: dict[str, int] = {}  # by document, the place of its judgement

    def add(self, example: Example, slots: Slots, seen: Mapping[View, DocumentVector]) -> None:
        self._numbers[example.document] = self.size
        self._collection.add(slots, [x.values for x in seen.values()])
        how = example.origin, example.chance, example.accepted, example.arrived, example.accepted_before
        self.ledger.add(example.bag.features, example.relevant, *how)

    @property
    def size(self) -> int:
        return self._collection.size

    @property
    def views(self) -> tuple[View, ...]:
        return self._collection.views

    @property
    def nbytes(self) -> int:
        return self._collection.nbytes + self.ledger.nbytes

    def window(self, name: View) -> DocumentWindow:
        return self._collection.newest(pocket.WINDOW_SIZE, name)

    @property
    def relevant(self) -> Bools:
        """Which documents of the window are relevant."""
        return self.ledger.relevant[-pocket.WINDOW_SIZE :]

    @property
    def sampled(self) -> Bools:
        """Which documents of the window were shown or drawn for audit, and are no near-duplicates of earlier ones."""
        return self.ledger.sampled[-pocket.WINDOW_SIZE :]

    def by_document(self, scores: Sequence[float]) -> dict[str, float]:
        """The scores of the newest documents, by document."""
        first = self.size - len(scores)
        return {document: scores[n - first] for document, n in self._numbers.items() if n >= first}

    def without_groups(self, held_out: Reals, run: LearnerRun, v: Vector, window: DocumentWindow) -> Reals:
        """Held-out scores from which what near-duplicates taught is taken out, too."""
        if run.apart_from_duplicates or self.ledger.unique.all():
            return held_out
        return minhash.without_group(held_out, run.scores(v, window), self.group)

    @property
    def group(self) -> NDArray[np.int64]:
        """The same number for near-duplicates, of the documents of the window."""
        return self.ledger.groups.group[-pocket.WINDOW_SIZE :]

    def unjudged(self, background: Background) -> Bools:
        """Which documents of the background have not been judged."""
        return background.unjudged(self._numbers.keys())

    def put_held_out(self, held_out: Reals, scores: Reals, background: Background) -> Reals:
        """The scores of the background, in which judged documents are given their held-out scores."""
        places, numbers = background.common(self._numbers)
        first = self.size - len(held_out)
        learned = numbers >= first
        scores[places[learned]] = held_out[numbers[learned] - first]
        return scores

    def evidence(self, goal: Targets, judged: JudgedWindow, band: Band, since: int) -> Evidence:
        worse_for = int(np.count_nonzero(self.ledger.arrived_since(since))) if since else 0
        return collect_evidence(goal.min_precision, judged, band, worse_for, self.ledger.watch())

    def figures(self, sap: float | None, f1: float | None) -> ModelFigures:
        relevant = int(np.count_nonzero(self.ledger.relevant))
        return ModelFigures(relevant, self.size - relevant, sap, f1)
