"""Documents that repeat another but for a few words (store/stream/signatures.py finds them).

A copy is decided as its original is decided now, so that a word more or less does not tip it over a threshold. But a
single word can be all that a topic looks for ("backup failed" among a thousand "backup done"): where the model accepts
one and rejects the other, or a rule matches, the copy is decided on its own and counted as a new document. It is also
counted in topics that were created after the original arrived.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from models.core.vectors import Bag
from models.text.duplicates import are_duplicates
from models.text.minhash import signatures
from service.schemas import ClassifyOptions, Document
from service.store.stream.documents import Remembered
from service.topics.background import Epoch
from service.topics.decisions.deciding import Decided, TopicVerdict, decide_documents
from service.topics.decisions.registry import Registry

OPPOSITE = {"accept", "reject"}


class Original(NamedTuple):
    """A document that others repeat, and the models' verdicts on it."""

    document: Document
    came_ms: int
    bag: Bag
    verdicts: Sequence[TopicVerdict]

    @property
    def id(self) -> str:
        return str(self.document.id)


class Repeat(NamedTuple):
    """The id of the document that a copy repeats, and the topics in which the copy counts all the same."""

    original: str
    counts_in: frozenset[str]


def originals(
    registry: Registry,
    decided: Decided,
    repeated: Mapping[str, str],
    remembered: Sequence[Remembered],
    options: ClassifyOptions,
    epoch: Epoch,
) -> dict[int, Original]:
    """By place in the batch, the remembered documents that others repeat; not those whose text has changed since."""
    models = decide_documents(registry, [known.document for known in remembered], options, epoch, apply_rules=False)
    theirs, ours = signatures(models.bags), signatures(decided.bags)
    place_of = {document: i for i, document in enumerate(models.ids)}
    by_place: dict[int, Original] = {}
    for place, document in enumerate(decided.ids):
        i = place_of.get(repeated.get(document, ""))
        if i is not None and are_duplicates(theirs[i], ours[place]):
            by_place[place] = Original(remembered[i].document, remembered[i].came_ms, models.bag(i), models.verdicts[i])
    return by_place


def counts_in(kept: Iterable[str], alike: Collection[str], younger: frozenset[str]) -> frozenset[str]:
    """The topics in which a copy counts: those that decide it on its own and do not reject it (`kept` has all that do
    not), and those that are younger than the original."""
    return younger | (frozenset(kept) - frozenset(alike))


def as_original(
    verdicts: Sequence[TopicVerdict], originals: Sequence[TopicVerdict]
) -> tuple[list[TopicVerdict], set[str]]:
    """The verdicts on a copy, and the topics in which it is decided as its original is; no verdict means reject."""
    ours, theirs = ({verdict.topic.name: verdict for verdict in row} for row in (verdicts, originals))
    merged, alike = [], set()
    for topic in ours if ours.keys() >= theirs.keys() else sorted(ours.keys() | theirs.keys()):
        verdict, other = ours.get(topic), theirs.get(topic)
        decisions = {verdict.decision if verdict else "reject", other.decision if other else "reject"}
        if (verdict and verdict.rule) or decisions == OPPOSITE:
            merged += [verdict] if verdict else []
        else:
            merged += [other] if other else []
            alike.add(topic)
    return merged, alike
