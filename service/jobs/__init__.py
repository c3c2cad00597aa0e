"""Background jobs: what takes too long for a request. Retraining topics, comparing methods, backfilling documents.

    POST /jobs  →  jobs.py  →  the record in Redis (store/jobs.py)  →  queue.py  →  child.py  →  one module a kind

Read in this order:

* `jobs.py`: jobs as users see them: submit, list, cancel. Checks at once what could only fail later.
* `queue.py`: a job worker (`python -m service.jobs.queue`). It claims the oldest job, has a child process do it, renews
  its lease meanwhile, and kills the child when the job is cancelled, takes too long or belongs to somebody else by now.
* `child.py`: the child process, which does one job and writes the result into the record.
* `context.py`: what a job is given: store, config, learning, and where it reports its progress.
* `retrain.py`, `compare.py`, `backfill.py`: the kinds of job, each an async function of the context and the request.
* `material.py`: a topic's training data, for the first two.
* `crews.py`, `farm/`: boosting on several processes or machines.

A job may be killed at any moment and started again, so whatever it does must be safe to do twice: see
Learning.publish_once, and the checkpoint of a backfill.

From outside, use `Jobs` of jobs.py, and start queue.py as a process. It loads no model code, so that an idle worker
costs little; only the child does.
"""

LOST = 75  # exit code (EX_TEMPFAIL) of a child that lost the store, or its job to another worker
