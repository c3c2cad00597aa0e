"""A vector as it would be served: its linear form, its scores of judged and unjudged documents, and its own cut."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.core.measures import Bools
from models.core.names import View
from models.core.vectors import Linear, Reals
from models.goals import thresholds
from models.goals.objectives import Objective
from models.goals.thresholds import Band, Scale
from models.learners.base import Vector
from models.learners.documents import DocumentWindow
from models.text.projection import ALPHA

# Σ x_f and ‖x‖ of a document of 60 different words, seen through each view
USUAL_DOCUMENT: Mapping[View, tuple[float, float]] = {
    "presence": (60.0, 7.7),
    "tf": (90.0, 14.0),
    "sqrt": (70.0, 9.5),
    "strength": (1.0, 0.13),
    "tfidf": (7.0, 1.0),
    "semantic": (7.0, float(np.sqrt(1 + ALPHA**2))),
}
# What a document that shares no word with the topic may still score in the semantic view, as a share of its whole
# length: it is in the neighbourhood, at a cosine of one half. Relevant documents lie higher by as much. Measurements:
# docs/experiments.md#words-and-latent-features.
NEIGHBOURHOOD = 0.5 * ALPHA**2 / (1 + ALPHA**2)


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    linear: Linear
    scale: Scale
    held_out: Reals  # of the judged documents in the window, each without its own influence or that of near-duplicates
    unseen: Reals  # of the background
    band: Band  # where the vector cuts if there is no goal

    @property
    def member_cut(self) -> float:
        """Where it cuts as a member of a committee. NEVER is too large to be subtracted from a score, so a member that
        had better accept nothing cuts beyond every usual document instead."""
        return min(self.band.accept_above, self.scale.zero + max(self.scale.one - self.scale.zero, 1.0))


def scale_of(v: Vector, name: View) -> Scale:
    """From the score of an unrelated document to that of one that points where v does, both of usual length."""
    total, length = USUAL_DOCUMENT[name]
    zero, height = v.bias + v.rest * total, length * float(np.sqrt(np.square(v.w).sum()))
    return Scale(zero + (NEIGHBOURHOOD * height if name == "semantic" else 0.0), zero + height)


def usual_band(
    v: Vector,
    scale: Scale,
    window: DocumentWindow,
    relevant: Bools,
    held_out: Reals,
    unseen: Reals,
    unjudged: Bools,
    sampled: Bools,
    wide: bool,
    objective: Objective | None = None,
) -> Band:
    """The band of a topic that promises nothing."""
    scores = window.scores(v.w, v.bias, v.rest) if window.size <= thresholds.MAX_SEPARATED else None
    return thresholds.choose(held_out, relevant, unseen, unjudged, scale, scores, sampled, wide, objective)
