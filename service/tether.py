"""Run a command that does not outlive the process that started it.

    python tether.py PARENT COMMAND ARGUMENT…

Linux can send a process a signal when its parent dies, however the parent dies. Only the process itself can ask for it,
hence this step between fork and exec (`preexec_fn` would do the same, but is not safe beside threads). Where the
request is unknown (macOS) the command simply runs; whoever starts next finds what was left and stops it.

The parent is, to Linux, the *thread* that forked: start tethered processes from a thread that lives as long as you do.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def tethered(*command: str) -> list[str]:
    """The command, wrapped to end when the calling process does."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def main(parent: int, *command: str) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died before we asked
            sys.exit(1)
    os.execv(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
