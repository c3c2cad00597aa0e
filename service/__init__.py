"""The service around the models: the outside world, in rooms. Each imports only from those below it.

1. `cli`, `run`, `demo`: the command line, the processes, the demonstration
2. `api`: HTTP, and nothing else
3. `sluice.py`: the parts of one process, put together
4. `flow`, `documents`, `feedback`, `archive`, `jobs`: documents in and decisions out; the documents that are
   remembered; judgements, review, metrics; topics as files; work in the background. They do not know each other
5. `topics`: a topic, from its log to decisions
6. `store`, `client`: Redis, and nobody else knows it; HTTP from Python
7. `schemas`: the public contract as types
8. the leaves, each of one idea: `config.py`, `errors.py`, `sentences.py` (what is wrong with invalid input, in words),
   `logs.py`, `clock.py`, `tasks.py` (threads and background tasks), `processes.py` (modules that run as processes),
   `tether.py` (a child that ends with its parent), `addresses.py` (which addresses are public), `redis_url.py` (the
   address of a cluster)

CONTRIBUTING.md follows a document, a judgement, a retraining and a stream through them.
"""
