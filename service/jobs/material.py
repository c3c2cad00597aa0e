"""A topic's training data: its judgements in force, and unjudged documents that it would reject.

Unjudged documents of the current background count as irrelevant if the topic would reject them. Those that it lets
through are left out: many of them are relevant, and where users judge only a part of what they are shown, a model that
ranks the rest last would look better than it is. Whether the topic would reject a document is decided by a model that
learned its judgements one by one, not by the served one, so that the fit depends only on the judgements in force, and
not on labels that have been corrected since.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from models.batch import refit
from models.batch.refit import Dataset
from models.core.vectors import Bag, Reals
from models.online.model import Example, Spec
from models.online.trainer import fold as plain_fold
from models.text.projection import Projection
from service.jobs.context import JobContext
from service.topics.background import Epoch
from service.topics.published import Base, PublishedModel
from service.topics.state import TopicState, example, spec_of


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """A topic's training data, and what its served model was made of."""

    born: str
    version: int
    spec: Spec
    in_base: list[Example]
    learned: list[Example]
    base: Base | None
    projection: Projection | None  # the newest; a change would put the topic under it
    judged: int
    data: Dataset  # the judged documents, then the rejected ones of the background
    relearned: PublishedModel  # what its judgements make, one by one

    def rejects(self, bag: Bag) -> bool:
        """Whether the topic would reject a document that nobody judged."""
        return self.relearned.decide_bag(bag)[0] == "reject"

    @property
    def relevant(self) -> int:
        return int(self.data.relevant.sum())

    @property
    def too_little(self) -> str:
        """Why there is too little to fit a model to; empty if there is enough."""
        if self.relevant < refit.MIN_OF_EACH:
            return f"Too little to learn from: {refit.MIN_OF_EACH} relevant documents are needed, not {self.relevant}."
        others = len(self.data.documents) - self.relevant
        if others < refit.MIN_OF_EACH:
            needed = f"{refit.MIN_OF_EACH} irrelevant or unjudged documents are needed"
            return f"Too little to learn from: {needed}, not {others}."
        return ""


async def load_material(context: JobContext, topic: str) -> tuple[Material, int]:
    """Loads a topic's training data, and the version that this job has published already (0 if none)."""
    epoch = context.epochs.current

    def read(state: TopicState) -> tuple[Material, int]:
        return _material(state, epoch, context.config.served_weights), state.published_by(context.job)

    return await context.learning.read(topic, read)


def _material(state: TopicState, epoch: Epoch, weights: int) -> Material:
    resolved = state.resolved
    base = Base.from_bytes(resolved.base.model) if resolved.base else None
    fitted: Mapping[str, float] = base.fitted if base else {}
    in_base = [example(judgement) for judgement in resolved.base_judgements() if judgement.first.document in fitted]
    learned = [example(judgement) for judgement in resolved.to_fold()]
    sample = {
        sampled.document: Bag(sampled.features, sampled.counts, epoch.frequencies.idf(sampled.features))
        for sampled in epoch.sample
        if sampled.document not in resolved.judged
    }
    spec, judged = spec_of(resolved), [example(judgement) for judgement in resolved.judged.values()]
    projection = epoch.projection.projection if epoch.projection and state.settings.semantic else None
    model = plain_fold(spec, judged, epoch.background, projection=projection, weights=weights)
    relearned = replace(state.build_model(epoch), model=model).under(epoch.projection)
    rejected = {document: bag for document, bag in sample.items() if relearned.decide_bag(bag)[0] == "reject"}
    data = Dataset.of(judged, rejected)
    return Material(
        state.head.born, resolved.version, spec, in_base, learned, base, projection, len(judged), data, relearned
    )


def served_scores(material: Material, weights: int) -> Reals:
    """Returns the held-out scores of the served model."""
    base = material.base
    model, fitted = (base.model, base.fitted) if base else (None, {})
    return refit.served_scores(
        material.data,
        material.spec,
        material.in_base,
        material.learned,
        weights,
        model,
        fitted,
        projection=material.projection,
    )
