"""Log lines: readable on a terminal, JSON elsewhere; uvicorn's go the same way.

What is tried again many times a second, while the store is gone, says so once in AGAIN_S.
"""

import logging
import sys
import time

import structlog

AGAIN_S = 30.0
MANY = 1000  # warnings that are remembered


def configure(level: str) -> None:
    """Every logger of this process, ours and the libraries', writes to standard error in one form."""
    terminal = sys.stderr.isatty()
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper("%H:%M:%S" if terminal else "iso", utc=not terminal),
    ]
    structlog.configure(
        processors=[_Once(), *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    # Tracebacks without the values of variables, which structlog shows unless it is told not to: among them are the
    # documents that were sent, and the store's address with its password.
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
    for library in ("httpx", "httpcore"):  # which name the address of every webhook, and there may be a token in it
        logging.getLogger(library).setLevel("WARNING")
    if level == "info":
        logging.getLogger("uvicorn.error").setLevel("WARNING")  # which process began what: the supervisor says enough


class _Once:
    """Leaves out a warning that was given word for word a moment ago."""

    def __init__(self) -> None:
        self._given: dict[str, float] = {}

    def __call__(self, logger: object, level: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        if level == "warning":
            now, said = time.monotonic(), repr(sorted(event.items()))
            if now - self._given.get(said, -AGAIN_S) < AGAIN_S:
                raise structlog.DropEvent
            if len(self._given) >= MANY:
                self._given.clear()
            self._given[said] = now
        return event
