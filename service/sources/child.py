"""The process that reads what others have sent: a feed, or mail, in by stdin, and its items out by stdout, as JSON.

    python -m service.sources.child feed URL
    python -m service.sources.child mbox ''

It limits its own time and memory, so that a feed that takes too much of either ends this process and no other.
"""

import resource
import sys

from service.sources.feeds import NotAFeed, parse
from service.sources.items import Parsed
from service.sources.records import from_mbox

CPU_S = 20
MEMORY_BYTES = 1_000_000_000


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    if sys.platform == "linux":  # elsewhere address space cannot be limited
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    try:
        format, url = sys.argv[1:]
        content = sys.stdin.buffer.read()
        answer = Parsed(feed=from_mbox(content) if format == "mbox" else parse(content, url))
    except NotAFeed as refused:
        answer = Parsed(refused=str(refused))
    except (MemoryError, RecursionError):
        answer = Parsed(refused="The feed is nested too deeply, or takes too much memory to read.")
    sys.stdout.buffer.write(answer.model_dump_json().encode())


if __name__ == "__main__":
    main()
