"""When a topic is retrained automatically: after a number of judgements, when it has become worse, or every night.

The topic's setting `retrain` decides, or else SLUICE_RETRAIN_*; by default there is no automatic retraining.
Housekeeping (run/housekeeping.py) checks every topic and submits what is due as an ordinary job. It notes the last one
beside the topic's counts, by compare-and-set, so that only one of several housekeepers submits. If it dies between
noting and submitting, the topic waits until it is due again.

`version` counts the events of the log, nearly all of which are judgements, so it shows which topics may be due; only
their logs are read to count judgements. The number of judgements in force would not do: it stops growing when old ones
are forgotten.
"""

from typing import NamedTuple

from models.batch import refit
from service.clock import time_of
from service.config import Config
from service.schemas import Policy
from service.topics.published import PublishedModel

NIGHT_HOUR = 3  # UTC


class LastRetrain(NamedTuple):
    """The retraining that was last submitted for a topic by policy."""

    version: int  # of the topic when it was submitted
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


def policy_of(published: PublishedModel, config: Config) -> Policy | None:
    """The policy in force for the topic; None if it is retrained only on request."""
    policy = published.settings.retrain
    if policy is None:
        policy = Policy(
            method=config.retrain_method,
            after=config.retrain_after,
            on_drift=config.retrain_on_drift,
            nightly=config.retrain_nightly,
        )
    return policy if policy.method is not None and (policy.after or policy.on_drift or policy.nightly) else None


def retrain_due(
    policy: Policy, published: PublishedModel, last: LastRetrain | None, now_ms: int, new: int | None = None
) -> RetrainDue:
    """Whether the topic is to be retrained now, and why or why not. Without the number of `new` judgements, it is
    estimated from the version."""
    if published.relevant < refit.MIN_OF_EACH:
        needed = f"{refit.MIN_OF_EACH} relevant documents are needed"
        return RetrainDue(False, f"Too little to learn from: {needed}, and {published.relevant} were judged.")
    if new is None:
        new = published.version - (last.version if last else 0)
    worse_for = published.model.evidence.worse_for
    if policy.on_drift and 0 < worse_for <= new:
        return RetrainDue(True, "It has become worse since it was last retrained.")
    if policy.after and new >= policy.after:
        return RetrainDue(True, f"There are {new} judgements since it was last retrained.")
    if policy.nightly and new and (last.at_ms if last else 0) < _last_night_ms(now_ms):
        return RetrainDue(True, "There are judgements since the last nightly retraining.")
    reasons = [
        f"after {policy.after - new} more judgements" if policy.after else "",
        "when it becomes worse" if policy.on_drift else "",
        f"at {NIGHT_HOUR}:00 UTC if there are new judgements" if policy.nightly else "",
    ]
    when = " or ".join(filter(None, reasons))
    before = f"Retrained at version {last.version} (job {last.job}); again" if last else "Will be retrained"
    return RetrainDue(False, f"{before} {when}.")


def _last_night_ms(now_ms: int) -> int:
    now = time_of(now_ms)
    tonight = now.replace(hour=NIGHT_HOUR, minute=0, second=0, microsecond=0)
    return int(tonight.timestamp() * 1000) - (86_400_000 if tonight > now else 0)
