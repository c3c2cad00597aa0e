"""Settings: every knob of the service, each readable from the environment as SLUICE_<NAME>.

Nothing is read at import. `Settings.from_env()` is called where a process begins (`create_app`, the worker, the command
line); what the command line gives wins over the environment. A value that cannot be right stops the start with a
sentence, and that sentence never repeats the store's address, which may hold a password.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from service import redis_url

PREFIX = "SLUICE_"
# Variables that the supervisor sets for its children, not for users: the process's name, and the directory of the
# counters that all API processes share (see api/telemetry.py; prometheus_client chose the name).
PROCESS_VAR = f"{PREFIX}PROCESS"
METRICS_DIR_VAR = "PROMETHEUS_MULTIPROC_DIR"
SCHEMES = ("redis://", "rediss://", "unix://", *redis_url.SCHEMES)


class StartError(Exception):
    """The service cannot start; the message is a sentence for the person at the terminal."""


def _store_address(url: str) -> str:
    if not url.startswith(SCHEMES):
        raise ValueError(f"the address of a store begins with one of {', '.join(SCHEMES)}")
    if redis_url.is_cluster(url):
        redis_url.nodes(url)
    return url


StoreAddress = Annotated[str, AfterValidator(_store_address)]


def _known_stemmer(language: str) -> str:
    try:
        import Stemmer
    except ModuleNotFoundError:
        raise ValueError("needs PyStemmer, which is not installed: .venv/bin/pip install PyStemmer") from None
    if language not in Stemmer.algorithms():
        raise ValueError(f"there is none for this language, but for {', '.join(Stemmer.algorithms())}")
    return language


def _known_method(method: str) -> str:
    from models.batch.registry import (
        parse,  # only where it is asked for: a command line should not load all of learning
    )

    parse(method, {})
    return method


Method = Annotated[str, AfterValidator(_known_method)]
StemmedLanguage = Annotated[str, AfterValidator(_known_stemmer)]


class Config(BaseSettings):
    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid")

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    data: Path = Field(Path("data"), description="Directory of the embedded store: everything Sluice remembers.")
    redis: StoreAddress | None = Field(
        None,
        repr=False,
        description="Address of your own Redis or Valkey (`redis://`, `rediss://`, `unix://`), or of a Redis Cluster "
        "(`redis+cluster://`, `rediss+cluster://`, nodes with commas between them); without it, an embedded one is "
        "started in the data directory.",
    )
    workers: int = Field(1, ge=1, le=256, description="API processes that share the port.")
    hosts: str | None = Field(
        None,
        max_length=10_000,
        description="Names, with commas between them, by which a service that listens to this machine alone may be "
        "called besides `localhost`, addresses and names without a dot: those of a proxy that passes them on.",
    )
    consumers: int = Field(
        1,
        ge=0,
        le=256,
        description="Processes that decide documents added to the Redis stream `sluice:in`, and deliver along routes.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least serious message logged.")

    max_body_bytes: int = Field(10_000_000, ge=1, description="Longest request body, NDJSON streams excepted.")
    max_text_chars: int = Field(1_000_000, ge=1, description="Longest text of a document.")
    max_documents: int = Field(1000, ge=1, description="Most documents, or judgements, in a JSON request.")
    max_requests: int = Field(1000, ge=1, description="Most requests in progress in one API process; more get 503.")
    max_listeners: int = Field(
        500, ge=1, description="Most listeners to streams of topics in one API process; they are requests, too."
    )
    max_topics: int = Field(100_000, ge=1, description="Most topics.")
    max_stream_lines: int = Field(1_000_000, ge=1, description="Most lines of an NDJSON request.")
    max_stream_bytes: int = Field(1_000_000_000, ge=1, description="Longest NDJSON request.")

    judgements_kept: int = Field(5000, ge=1, description="Judgements kept a topic; the oldest are forgotten.")
    versions_kept: int = Field(100, ge=1, description="Versions listed and restorable a topic.")
    review_kept: int = Field(
        500, ge=1, description="Accepted documents, and as many abstained from, that wait for a judgement a topic."
    )
    skipped_kept: int = Field(5000, ge=1, description="Skipped documents a topic that are not offered again.")
    known_kept: int = Field(1000, ge=1, description="Most known items a topic.")
    audit_rate: float = Field(
        0.01,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="Share of rejected documents drawn for audit where the goal has `min_recall` or `max_error`; "
        "a topic's own `audit` overrules it.",
    )
    jobs_kept: int = Field(1000, ge=1, description="Jobs that are remembered; the oldest that are over are forgotten.")
    job_limit_s: float = Field(
        3600, gt=0, le=1e6, allow_inf_nan=False, description="Seconds a job may take; then it is ended, and has failed."
    )
    job_workers: int = Field(1, ge=0, le=64, description="Processes that do jobs, one at a time each.")
    retrain_method: Method | None = Field(
        None, description="Method by which topics are retrained by themselves (as of a job); without it, none is."
    )
    retrain_after: int | None = Field(200, ge=10, description="New judgements after which a topic is retrained so.")
    retrain_on_drift: bool = Field(True, description="A topic that has become worse is retrained so.")
    retrain_nightly: bool = Field(False, description="Topics with new judgements are retrained so every night.")
    archives: Path | None = Field(
        None, description="Directory of NDJSON files that a job may read (`backfill`); without it, none."
    )
    out_kept: int = Field(
        5000, ge=1, description="Decisions kept a topic in the stream of what it lets through, with their documents."
    )
    dead_kept: int = Field(
        10_000, ge=1, description="Entries of `sluice:in` that could not be decided, kept in `sluice:dead`."
    )
    documents_kept: int = Field(50_000, ge=1, description="Documents remembered for feedback by id.")

    metrics_topics: int = Field(
        100, ge=0, le=1000, description="Topics, the oldest, with series of their own in `GET /metrics`."
    )
    store_timeout_s: float = Field(
        1.0, gt=0, le=60, allow_inf_nan=False, description="Seconds the store may take before a request answers 503."
    )
    take_over_s: float = Field(
        5.0,
        gt=0,
        le=3600,
        allow_inf_nan=False,
        description="Seconds after which documents that one consumer took and did not decide are taken by another.",
    )
    retry_s: float = Field(
        60.0,
        gt=0,
        le=3600,
        allow_inf_nan=False,
        description="Longest time, in seconds, between two attempts to deliver a decision along a route.",
    )
    webhook_timeout_s: float = Field(
        10.0, gt=0, le=60, allow_inf_nan=False, description="Seconds that the receiver of a webhook may take."
    )
    webhooks_private: bool = Field(
        False, description="Webhooks may go to addresses that are not public, such as 127.0.0.1."
    )
    sweep_s: float = Field(
        2.0,
        gt=0,
        le=3600,
        allow_inf_nan=False,
        description="Seconds between two looks for changes that went unnoticed.",
    )

    served_weights: int = Field(2000, ge=1, description="Largest weights of a topic's model that are served.")
    title_weight: float = Field(
        2.0,
        gt=0,
        le=100,
        allow_inf_nan=False,
        description="How often a word of the title counts, against one of the text.",
    )
    stemmer: StemmedLanguage | None = Field(
        None, description="Snowball stemmer, such as `english`; needs the `stemming` extra (PyStemmer)."
    )
    stop_words: bool = Field(False, description="Leave out common English words.")
    bigrams: bool = Field(False, description="Pairs of neighbouring words are features too.")

    @classmethod
    def from_env(cls, **given: Any) -> Self:
        """The settings of the environment, overruled by those given (None is not given)."""
        try:
            return cls(**{name: value for name, value in given.items() if value is not None})
        except ValidationError as error:
            raise StartError(
                "; ".join(_sentence(cls, e["loc"], e["msg"], e["input"]) for e in error.errors())
            ) from None


def _sentence(settings: type[Config], where: tuple[int | str, ...], message: str, value: object) -> str:
    name = str(where[0]) if where else ""
    secret = name not in settings.model_fields or not settings.model_fields[name].repr
    got = "" if secret else f" (got {str(value)[:80]!r})"
    return f"{PREFIX}{name.upper()}: {message.removeprefix('Value error, ')}{got}"
