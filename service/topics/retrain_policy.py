"""When a topic is retrained by itself: after so many judgements, when it has become worse, or every night.

A topic's own `retrain` says so, else the settings SLUICE_RETRAIN_*; neither does unless somebody asks. Housekeeping
(run/housekeeping.py) looks at every topic and submits what is due as an ordinary job. What it submitted last stands in
the topic's tally, and is changed by compare-and-set, so that of several housekeepers one submits. One that dies between
the two has the topic wait for its next reason.

`version` counts events of the log, nearly all of which are judgements, so it tells who may be due; of these the log is
asked. The number of judgements that stand would not do, since it stops growing when old ones are forgotten.
"""

from typing import NamedTuple

from models.batch import refit
from service.clock import time_of
from service.config import Config
from service.schemas import Policy
from service.topics.published import PublishedModel

NIGHT = 3  # o'clock, UTC


class LastRetrain(NamedTuple):
    """The retraining that was last submitted for a topic."""

    version: int  # at which the topic was
    at_ms: int
    job: str

    def to_text(self) -> str:
        return f"{self.version} {self.at_ms} {self.job}"

    @classmethod
    def of(cls, text: str) -> "LastRetrain":
        version, at_ms, job = text.split(" ")
        return cls(int(version), int(at_ms), job)


class RetrainDue(NamedTuple):
    due: bool
    detail: str


def policy_of(served: PublishedModel, config: Config) -> Policy | None:
    """What is in force for the topic; None if it is retrained only when somebody asks."""
    own = served.settings.retrain
    if own is None:
        own = Policy(
            method=config.retrain_method,
            after=config.retrain_after,
            on_drift=config.retrain_on_drift,
            nightly=config.retrain_nightly,
        )
    return own if own.method is not None and (own.after or own.on_drift or own.nightly) else None


def retrain_due(
    policy: Policy, served: PublishedModel, last: LastRetrain | None, now_ms: int, new: int | None = None
) -> RetrainDue:
    """Whether the topic is to be retrained now, and why or why not. How many judgements are `new` may be known."""
    if served.relevant < refit.MIN_OF_EACH:
        few = f"{served.relevant} relevant documents were judged"
        return RetrainDue(False, f"Too little to learn from: {few}, and it takes {refit.MIN_OF_EACH}.")
    if new is None:
        new = served.version - (last.version if last else 0)
    worse = served.model.evidence.worse_for
    if policy.on_drift and 0 < worse <= new:
        return RetrainDue(True, "It has become worse since it was last retrained.")
    if policy.after and new >= policy.after:
        return RetrainDue(True, f"There are {new} judgements since it was last retrained.")
    if policy.nightly and new and (last.at_ms if last else 0) < _last_night_ms(now_ms):
        return RetrainDue(True, "There are judgements that the last night's retraining should see.")
    reasons = [
        f"after {policy.after - new} more judgements" if policy.after else "",
        "when it becomes worse" if policy.on_drift else "",
        f"at {NIGHT}:00 UTC if there are new judgements" if policy.nightly else "",
    ]
    when = " or ".join(filter(None, reasons))
    before = f"Retrained at version {last.version} (job {last.job}); again" if last else "Will be retrained"
    return RetrainDue(False, f"{before} {when}.")


def _last_night_ms(now_ms: int) -> int:
    now = time_of(now_ms)
    tonight = now.replace(hour=NIGHT, minute=0, second=0, microsecond=0)
    return int(tonight.timestamp() * 1000) - (86_400_000 if tonight > now else 0)
