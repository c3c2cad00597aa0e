"""The newest documents that are remembered, scored: by a topic as it is, and by one that does not exist yet.

Nothing is written. The topic to be is the fold of an empty log with the settings that are asked for, against the
background of this moment, which is what creating it would publish.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from models.text.analysis import Analysis, bags
from models.text.rules import Subject
from service.schemas import Decision, Document, NewTopic
from service.store.events import Event
from service.store.resolve import Resolved
from service.store.stream.documents import unpack
from service.store.topics import Store
from service.tasks import Pool
from service.topics.background import Epochs
from service.topics.decisions.deciding import bag_of
from service.topics.decisions.rules import DECIDES, compile_rules
from service.topics.features import log_features
from service.topics.published import PublishedModel
from service.topics.settings import TopicSettings, check, read_terms
from service.topics.state import train

NEWEST_DOCUMENTS = 1000  # that are looked at
EXAMPLES = 5  # of each decision that are shown, the highest scores first


@dataclass(frozen=True, slots=True)
class Beginning:
    """How a topic would decide the newest documents before anybody has judged one."""

    documents: int
    accepted: int
    abstained: int
    accepts: list[str]  # titles, highest scores first
    abstains: list[str]


class Newest:
    def __init__(self, store: Store, epochs: Epochs, analysis: Analysis, weights: int, pool: Pool) -> None:
        self._store = store
        self._epochs = epochs
        self._analysis = analysis
        self._weights = weights
        self._pool = pool

    async def scores(self, published: PublishedModel) -> list[float]:
        """The scores that the model as it is gives to the newest documents."""
        documents = await self._load()
        return await self._pool.run(self._scores, published, documents)

    async def begin(self, new: NewTopic) -> Beginning:
        """How such a topic would decide the newest documents; raises `BadInput` if there cannot be one."""
        check(dict(new))
        terms = read_terms(new.terms, self._analysis)
        settings = TopicSettings(**new.model_dump(exclude={"id"}), created_ms=0, read=terms)
        documents = await self._load()
        return await self._pool.run(self._begin, settings, documents)

    def _begin(self, settings: TopicSettings, documents: Sequence[Document]) -> Beginning:
        published = self._new(settings)
        rules = compile_rules(settings.rules)
        titles: dict[Decision, list[tuple[float, str]]] = {"accept": [], "abstain": [], "reject": []}
        for document, score in zip(documents, self._scores(published, documents), strict=True):
            subject = Subject.of(document.title, document.text, document.source or "") if rules else None
            rule = rules.decides(subject) if rules and subject else None
            decision = DECIDES[rule] if rule else published.decide(score)
            titles[decision].append((score, document.title or document.text))
        accepted, abstained = titles["accept"], titles["abstain"]
        best = [_titles(each) for each in (accepted, abstained)]
        return Beginning(len(documents), len(accepted), len(abstained), *best)

    def _new(self, settings: TopicSettings) -> PublishedModel:
        """The first version of a topic with these settings."""
        epoch = self._epochs.current
        query = log_features("", settings.query, self._analysis, epoch)
        created = Event("created", 0, epoch.number, settings=settings.model_dump_json(), features=query)
        resolved = Resolved(0, epoch.number, created)
        trainer = train(resolved, self._weights, epoch.projection.projection if epoch.projection else None)
        model = trainer.model(epoch.background)
        return PublishedModel("", "", 0, epoch.number, settings, model, 0, 0).under(epoch.projection)

    def _scores(self, published: PublishedModel, documents: Sequence[Document]) -> list[float]:
        counted = bags([(document.title, document.text) for document in documents], self._analysis)
        idf = self._epochs.current.frequencies.idf(counted.features)
        return [published.decision_score(bag_of(counted, idf, i)) for i in range(len(documents))]

    async def _load(self) -> list[Document]:
        ids = await self._store.documents.newest(0, NEWEST_DOCUMENTS)
        blobs = await self._store.documents.load(ids[:NEWEST_DOCUMENTS]) if ids else []
        return [unpack(blob).document for blob in blobs if blob]


def _titles(scored: Sequence[tuple[float, str]]) -> list[str]:
    """The titles with the highest scores, each once."""
    return list(dict.fromkeys(title for _, title in sorted(scored, reverse=True)))[:EXAMPLES]
