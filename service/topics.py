"""What is said of a topic: its settings and how it stands; its model as it is shown, as a file, and read back."""

from collections.abc import Iterable
from datetime import UTC, datetime

import numpy as np

from models.fold import Model
from models.text import features_of
from models.vectors import Linear
from service import schemas
from service.errors import BadInput, FieldError
from service.served import Served

STRONGEST = 20  # terms shown for and against


def topic(served: Served) -> schemas.Topic:
    settings, model = served.settings, served.model
    return schemas.Topic(
        id=served.topic,
        **settings.model_dump(exclude={"created_ms"}),
        created=time_of(settings.created_ms),
        status=schemas.Status(
            version=served.version,
            judged=schemas.Judged(relevant=served.relevant, irrelevant=served.irrelevant),
            reject_below=model.reject_below,
            accept_above=model.accept_above,
            goal=schemas.GoalStatus() if settings.goal != schemas.Goal() else None,
        ),
    )


def etag(served: Served) -> str:
    return f'"{served.born}-{served.version}"'


def time_of(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)


def model_info(served: Served, words: dict[int, str]) -> schemas.ModelInfo:
    linear = served.model.linear
    order = np.argsort(linear.weights, kind="stable")

    def shown(places: Iterable[int]) -> list[schemas.Term]:
        return [schemas.Term(term=words.get(int(linear.features[i])), weight=float(linear.weights[i])) for i in places]

    toward = [i for i in order[::-1][:STRONGEST] if linear.weights[i] > 0]
    against = [i for i in order[:STRONGEST] if linear.weights[i] < 0]
    return schemas.ModelInfo(
        topic=served.topic,
        kind=served.settings.learner.kind,
        version=served.version,
        reject_below=served.model.reject_below,
        accept_above=served.model.accept_above,
        weights=len(linear.features),
        terms=schemas.Terms(toward=shown(toward), against=shown(against)),
    )


def model_file(served: Served, words: dict[int, str]) -> schemas.ModelFile:
    linear = served.model.linear
    weights = dict(zip(linear.features.tolist(), linear.weights.tolist(), strict=True))
    return (
        schemas.ModelFile.model_construct(  # unchecked: the limits are for what comes in, and one can learn past them
            kind=served.settings.learner.kind,
            view=linear.view,
            bias=linear.bias,
            rest=linear.rest,
            reject_below=served.model.reject_below,
            accept_above=served.model.accept_above,
            terms={words[feature]: weight for feature, weight in weights.items() if feature in words},
            features={f"{feature:016x}": weight for feature, weight in weights.items() if feature not in words},
        )
    )


def model(file: schemas.ModelFile, most: int) -> Model:
    """The model that a file holds, if it has no more weights than we serve."""
    if len(file.terms) + len(file.features) > most:
        where = [FieldError(pointer="/terms", detail=f"has more than {most:,} weights, with those of `features`")]
        raise BadInput("The model is larger than this Sluice serves (SLUICE_SERVED_WEIGHTS).", where)
    features = np.concatenate([features_of(list(file.terms)), np.array([int(f, 16) for f in file.features], np.uint64)])
    weights = np.array([*file.terms.values(), *file.features.values()], np.float32)
    features, first = np.unique(features, return_index=True)
    linear = Linear(file.view, features, weights[first], file.bias, file.rest)
    return Model(linear, file.reject_below, file.accept_above)
