"""The service's configuration: every setting, each read from the environment as SLUICE_<NAME>.

Nothing is read at import. Each process calls `Config.from_env()` when it starts; options from the command line take
precedence over the environment. An invalid value stops the start with a sentence that says what is wrong. The sentence
never repeats the store's address, which may contain a password.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from models.core.names import METHOD_KINDS
from service import redis_url
from service.sentences import describe

PREFIX = "SLUICE_"
# Variables that the supervisor sets for its children, not for users: the process's name, and the directory of the
# counters that all API processes share (see api/telemetry.py; prometheus_client chose the name).
PROCESS_VAR = f"{PREFIX}PROCESS"
METRICS_DIR_VAR = "PROMETHEUS_MULTIPROC_DIR"
SCHEMES = ("redis://", "rediss://", "unix://", *redis_url.SCHEMES)
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class StartError(Exception):
    """The service cannot start. The message is shown to the person at the terminal."""


def _store_address(url: str) -> str:
    if not url.startswith(SCHEMES):
        raise ValueError(f"This must start with one of {', '.join(SCHEMES)}.")
    if redis_url.is_cluster(url):
        redis_url.nodes(url)
    return url


StoreAddress = Annotated[str, AfterValidator(_store_address)]


def _known_stemmer(language: str) -> str:
    try:
        import Stemmer
    except ModuleNotFoundError:
        raise ValueError("This needs PyStemmer, which is not installed: .venv/bin/pip install PyStemmer") from None
    if language not in Stemmer.algorithms():
        raise ValueError(f"This must be one of {', '.join(Stemmer.algorithms())}.")
    return language


def _known_method(method: str) -> str:
    if method not in METHOD_KINDS:
        raise ValueError(f"This must be one of {', '.join(METHOD_KINDS)}.")
    return method


Method = Annotated[str, AfterValidator(_known_method)]
StemmedLanguage = Annotated[str, AfterValidator(_known_stemmer)]


class Config(BaseSettings):
    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid")

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 picks a free one.")
    data: Path = Field(
        Path("data"), description="Directory of the embedded store, which holds everything Sluice remembers."
    )
    search: Path | None = Field(
        None,
        description="Directory of the search index, which can be deleted at any time; default: `search` in the data "
        "directory. It is made when somebody searches for the first time.",
    )
    redis: StoreAddress | None = Field(
        None,
        repr=False,
        description="URL of your own Redis or Valkey (`redis://`, `rediss://`, `unix://`) or of a Redis Cluster "
        "(`redis+cluster://`, `rediss+cluster://`, nodes separated by commas); without it, an embedded server is "
        "started in the data directory.",
    )
    workers: int = Field(1, ge=1, le=256, description="Number of API processes; they share the port.")
    hosts: str | None = Field(
        None,
        max_length=10_000,
        description="Extra `Host` names to accept when bound to loopback, separated by commas, such as a proxy's. "
        "`localhost`, IP addresses and names without a dot are always accepted.",
    )
    access: Literal["open", "keys"] | None = Field(
        None,
        description="`keys`: callers need a key; `open`: anybody may call. Without it, access is open on loopback, and "
        "on any other address the service does not start.",
    )
    admin_key: str | None = Field(
        None,
        min_length=32,
        max_length=1000,
        repr=False,
        description="A key with every scope, of at least 32 characters that nobody can guess. Without it, the first "
        "start with `SLUICE_ACCESS=keys` makes one and prints it.",
    )
    dask: str | None = Field(
        None,
        max_length=10_000,
        description="Addresses of Dask clusters that jobs may use, separated by commas, such as "
        "`tcp://scheduler:8786`; those of this machine they may always use. A cluster can run code in a job: name only "
        "ones that you trust.",
    )
    consumers: int = Field(
        1,
        ge=0,
        le=256,
        description="Processes that decide documents from the Redis stream `sluice:in` and deliver along routes.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Lowest severity to log.")

    max_body_bytes: int = Field(10_000_000, ge=1, description="Maximum bytes in a request body, except NDJSON.")
    max_text_chars: int = Field(1_000_000, ge=1, description="Maximum characters in the text of a document.")
    max_documents: int = Field(1000, ge=1, description="Maximum documents or judgements in a JSON request.")
    max_requests: int = Field(1000, ge=1, description="Maximum requests in progress per API process; any more get 503.")
    max_listeners: int = Field(
        500, ge=1, description="Maximum listeners to topic streams per API process; they count as requests, too."
    )
    max_topics: int = Field(100_000, ge=1, description="Maximum number of topics.")
    max_stream_lines: int = Field(1_000_000, ge=1, description="Maximum lines in an NDJSON request.")
    max_stream_bytes: int = Field(1_000_000_000, ge=1, description="Maximum bytes in an NDJSON request.")

    judgements_kept: int = Field(5000, ge=1, description="Judgements kept per topic; the oldest are dropped.")
    versions_kept: int = Field(100, ge=1, description="Versions kept per topic, to list and restore.")
    review_kept: int = Field(
        500, ge=1, description="Accepted documents per topic that wait for review, and as many abstained ones."
    )
    skipped_kept: int = Field(5000, ge=1, description="Skipped documents per topic that review does not offer again.")
    known_kept: int = Field(1000, ge=1, description="Maximum known items per topic.")
    audit_rate: float = Field(
        0.01,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="Share of rejected documents drawn for audit; a topic's own `audit` overrides it.",
    )
    jobs_kept: int = Field(1000, ge=1, description="Jobs remembered; the oldest finished ones are dropped.")
    job_limit_s: float = Field(
        3600,
        gt=0,
        le=1e6,
        allow_inf_nan=False,
        description="Seconds a job may run; after that it is stopped and marked as failed.",
    )
    job_workers: int = Field(1, ge=0, le=64, description="Processes that run jobs; each runs one at a time.")
    retrain_method: Method | None = Field(
        None,
        description="Method for automatic retraining, as in a job; without it, only topics with their own `retrain` "
        "are retrained.",
    )
    retrain_after: int | None = Field(
        200, ge=10, description="New judgements after which a topic is retrained automatically."
    )
    retrain_on_drift: bool = Field(True, description="Retrain a topic automatically when it has got worse.")
    retrain_nightly: bool = Field(False, description="Retrain topics with new judgements automatically every night.")
    archives: Path | None = Field(
        None, description="Directory of NDJSON files that `backfill` jobs may read; without it, they read none."
    )
    out_kept: int = Field(
        5000, ge=1, description="Decisions kept per topic in its output stream, with their documents."
    )
    dead_kept: int = Field(
        10_000, ge=1, description="Entries of `sluice:in` that could not be decided and are kept in `sluice:dead`."
    )
    documents_kept: int = Field(50_000, ge=1, description="Documents remembered for feedback by id.")

    metrics_topics: int = Field(
        100, ge=0, le=1000, description="Topics with their own series in `GET /metrics`; the oldest come first."
    )
    store_timeout_s: float = Field(
        1.0, gt=0, le=60, allow_inf_nan=False, description="Seconds to wait for the store before a request gets 503."
    )
    take_over_s: float = Field(
        5.0,
        gt=0,
        le=3600,
        allow_inf_nan=False,
        description="Seconds after which a consumer takes over documents that another one has claimed but not decided, "
        "and a housekeeper a source that another one was polling.",
    )
    retry_s: float = Field(
        60.0,
        gt=0,
        le=3600,
        allow_inf_nan=False,
        description="Maximum seconds between two attempts to deliver a decision along a route.",
    )
    webhook_timeout_s: float = Field(
        10.0, gt=0, le=60, allow_inf_nan=False, description="Seconds a webhook receiver may take to answer."
    )
    webhooks_private: bool = Field(
        False, description="Allow webhooks to addresses that are not public, such as 127.0.0.1."
    )
    sources_every_s: float = Field(
        900.0,
        ge=10,
        le=2_592_000,
        allow_inf_nan=False,
        description="Seconds between two polls of a source that does not say otherwise.",
    )
    sources_timeout_s: float = Field(
        20.0, gt=0, le=300, allow_inf_nan=False, description="Seconds the server of a source may take for all it sends."
    )
    sources_max_bytes: int = Field(
        5_000_000, ge=1000, le=100_000_000, description="Maximum bytes of a feed, after decompression."
    )
    sources_files: Path | None = Field(
        None,
        description="Directory of files and folders that sources may read; without it, they read none.",
    )
    sources_private: bool = Field(
        False, description="Allow sources at addresses that are not public, such as 127.0.0.1."
    )
    sources_kept: int = Field(1000, ge=1, le=100_000, description="Maximum number of sources.")
    sweep_s: float = Field(
        2.0,
        gt=0,
        le=3600,
        allow_inf_nan=False,
        description="Seconds between checks for changes that a process has missed.",
    )

    epoch_s: float = Field(
        5.0,
        ge=0,
        le=3600,
        allow_inf_nan=False,
        description="Least seconds between two counts of the stream's words that a process publishes. With 0 they are "
        "published as soon as enough documents are new, before the request with the last of these is answered.",
    )
    served_weights: int = Field(2000, ge=1, description="Maximum weights served per topic; the largest are kept.")
    title_weight: float = Field(
        2.0,
        gt=0,
        le=100,
        allow_inf_nan=False,
        description="How much a word in the title counts, relative to one in the text.",
    )
    stemmer: StemmedLanguage | None = Field(
        None, description="Snowball stemmer, such as `english`; needs the `stemming` extra (PyStemmer)."
    )
    stop_words: bool = Field(False, description="Leave out common English words.")
    bigrams: bool = Field(False, description="Use pairs of neighbouring words as features, too.")
    semantic: bool = Field(
        True,
        description="Learn from the stream which words go together, so that topics find documents in other words, too.",
    )

    @classmethod
    def from_env(cls, **options: Any) -> Self:
        """Reads the environment. Options that are not None take precedence; StartError if a value is invalid."""
        try:
            return cls(**{name: value for name, value in options.items() if value is not None})
        except ValidationError as error:
            raise StartError(" ".join(map(_describe, error.errors()))) from None

    def check_access(self) -> None:
        """Raises StartError if others could reach the service, and no setting says whether they may call."""
        if self.access is None and self.host not in LOOPBACK:
            raise StartError(
                f"Others may reach the service at {self.host}. Set SLUICE_ACCESS=keys, so that callers need a key, or "
                "SLUICE_ACCESS=open if something in front of it decides who may call."
            )


def _describe(finding: Mapping[str, Any]) -> str:
    """Says what is wrong with a setting, and the value it was given unless that is secret."""
    name = str(finding["loc"][0]) if finding["loc"] else ""
    secret = name not in Config.model_fields or not Config.model_fields[name].repr
    value = "" if secret else f" It is {str(finding['input'])[:80]!r}."
    sentence, variable = describe(finding), f"{PREFIX}{name.upper()}"
    about = f"{variable}{sentence.removeprefix('This')}" if sentence.startswith("This ") else f"{variable}: {sentence}"
    return about + value
