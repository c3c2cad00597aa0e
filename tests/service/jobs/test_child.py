"""The message with which a job ends."""

import pytest

from service.jobs.child import summary
from service.schemas.jobs import Retrained, RetrainResult

TOO_LITTLE = "Too little to learn from."


def result(published: int, unpublished: int) -> RetrainResult:
    topics = [
        Retrained(topic=f"t{i}", relevant=0, irrelevant=0, background=0, published=i < published, detail=TOO_LITTLE)
        for i in range(published + unpublished)
    ]
    return RetrainResult(method="svm", published=published, topics=topics, total=len(topics))


@pytest.mark.parametrize(
    ("published", "unpublished", "message"),
    [
        (0, 1, f"Done: 0 of 1 topic published. {TOO_LITTLE}"),
        (2, 0, "Done: 2 of 2 topics published."),
        (0, 2, f"Done: 0 of 2 topics published. t0: {TOO_LITTLE} t1: {TOO_LITTLE}"),
        (
            1,
            4,
            f"Done: 1 of 5 topics published. t1: {TOO_LITTLE} t2: {TOO_LITTLE} t3: {TOO_LITTLE} "
            "The result says why 1 more was not published.",
        ),
        (0, 0, "Done: There is no topic to retrain."),
    ],
)
def test_a_retraining_says_why_topics_were_not_published(published: int, unpublished: int, message: str) -> None:
    assert summary(result(published, unpublished)) == message
