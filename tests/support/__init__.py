"""Helpers that several tests share.

Something to test against, from the lightest to the heaviest:

* `api.py`: an app in this process, on a real store, with a client that has shorthands for most requests.
* `live.py`: one API process, for what only shows over sockets.
* `job_workers.py`: job workers as processes, and the jobs they run.
* `processes.py`: a whole `sluice serve`; whether a process has ended, and which children it has.
* `redis_cluster.py`: a Redis Cluster whose nodes can be killed, frozen and moved about.
* `stub_app.py`: stands in for the service where only its processes matter.

Something that uses it:

* `readers.py`: readers who judge all the time and remember what was acknowledged.
* `streaming.py`: documents of two kinds, as many as a test wants.
* `consuming.py`: a consumer at work, and what it left in the store.
* `receiver.py`: a receiver of webhooks.
* `terminal.py`: a program in a terminal.

And for what a test checks:

* `waiting.py`: waits until a condition holds, and how long at most.
* `refusals.py`: what every refusal must look like.
* `reference.py`: the learners and measures once more, dense, slow and obviously right.
"""

from pathlib import Path

ROOT = Path(__file__).parents[2]  # of the repository
