"""Processes: what each of them runs, and who starts and stops them.

    sluice serve  →  supervisor.py  →  api.py          HTTP, SLUICE_WORKERS of them on one port
                                    →  housekeeping.py one housekeeper: refreshes, retrainings that are due
                                    →  jobs/queue.py   SLUICE_JOB_WORKERS job workers, each with a child (jobs/child.py)
                                    →  consumer.py     SLUICE_CONSUMERS consumers of the stream sluice:in
                                    →  the embedded store (store/redis/embedded.py), unless SLUICE_REDIS names another

Read in this order:

* `supervisor.py`: starts them in order, starts them again when they die, stops them on a signal.
* `api.py`: uvicorn with deadlines for slow clients and a limit for requests.
* `consumer.py`: decides documents from the stream and delivers what topics let through. Light until the first document.
* `housekeeping.py`: what no request should wait for and nobody asks for.
* `replay.py`: recomputes every model from its log, or verifies that it would be the same (scripts/replay).
* `warm.py`: compiles every kernel before the first request (scripts/setup, Dockerfile).

Processes are started by the names of their modules, which are in service/processes.py. They share only the store:
whatever two of them might do at once is one script, or a compare-and-set, there. Nothing below this room imports it.
`sluice worker` starts the housekeeper and the job workers; in the code a *worker* is a job worker, or one of a farm.
"""
