"""Run a command that does not outlive the process that started it.

    python tether.py PARENT COMMAND ARGUMENT…

Linux can signal a process when its parent dies, no matter how. Only the process itself can request this, hence the step
between fork and exec (`preexec_fn` would do the same, but is not safe with threads). Other systems (macOS) have no such
request: the command just runs, and the next start finds what was left over and stops it.

To Linux the parent is the *thread* that forked, so start tethered processes from a thread that lives as long as you do.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def tethered(*command: str) -> list[str]:
    """The command, wrapped so that it ends when the calling process does."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def main(parent: int, *command: str) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # the parent died before the request
            sys.exit(1)
    os.execv(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
