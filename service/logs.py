"""Logging: readable lines on a terminal, JSON elsewhere, for this service and for uvicorn.

While the store is down some calls are retried many times a second. The same warning is logged once in REPEAT_S.
"""

import logging
import sys
import time

import structlog

REPEAT_S = 30.0
MAX_REMEMBERED = 1000  # warnings


def configure(level: str) -> None:
    """Sends the log lines of this process, from our code and from libraries, to standard error in one format."""
    terminal = sys.stderr.isatty()
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper("%H:%M:%S" if terminal else "iso", utc=not terminal),
    ]
    structlog.configure(
        processors=[_DropRepeats(), *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    # structlog shows the values of local variables in tracebacks by default. They may be documents, or the store's
    # address with its password.
    traceback = structlog.processors.ExceptionRenderer(structlog.tracebacks.ExceptionDictTransformer(show_locals=False))
    last: list[structlog.typing.Processor] = (
        [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
        if terminal
        else [traceback, structlog.processors.JSONRenderer(ensure_ascii=False)]
    )
    handler = logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for library in ("httpx", "httpcore"):  # they log the URL of every webhook, which may contain a token
        logging.getLogger(library).setLevel("WARNING")
    if level == "info":
        logging.getLogger("uvicorn.error").setLevel("WARNING")  # the supervisor logs what starts and stops


class _DropRepeats:
    """Drops a warning if the same one was logged within the last REPEAT_S seconds."""

    def __init__(self) -> None:
        self._logged_at: dict[str, float] = {}

    def __call__(self, logger: object, level: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        if level == "warning":
            now, warning = time.monotonic(), repr(sorted(event.items()))
            if now - self._logged_at.get(warning, -REPEAT_S) < REPEAT_S:
                raise structlog.DropEvent
            if len(self._logged_at) >= MAX_REMEMBERED:
                self._logged_at.clear()
            self._logged_at[warning] = now
        return event
