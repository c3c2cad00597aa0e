"""The process that reads a feed: a feed comes in by stdin, and goes out by stdout as items in JSON.

    python -m service.sources.child URL

It limits its own time and memory, so that a feed that takes too much of either ends this process and no other.
"""

import resource
import sys

from service.sources.feeds import NotAFeed, parse
from service.sources.items import Parsed

CPU_S = 20
MEMORY_BYTES = 1_000_000_000


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    if sys.platform == "linux":  # elsewhere address space cannot be limited
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    try:
        answer = Parsed(feed=parse(sys.stdin.buffer.read(), sys.argv[1]))
    except NotAFeed as refused:
        answer = Parsed(refused=str(refused))
    except (MemoryError, RecursionError):
        answer = Parsed(refused="The feed is nested too deeply, or takes too much memory to read.")
    sys.stdout.buffer.write(answer.model_dump_json().encode())


if __name__ == "__main__":
    main()
