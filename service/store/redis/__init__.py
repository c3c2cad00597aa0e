"""Redis itself: how it is reached, what its keys are called, how scripts run, and a server of our own.

Reading order:

1. `keys.py`: the names of all keys, what they hold, and which module of the store reads and writes them
2. `scripts.py`: steps (commands and calls of scripts), how they are sent, and what all scripts have in common
3. `connection.py`: how many connections, how long to wait, one server or a cluster
4. `errors.py`: Redis's errors as ours
5. `consumer_group.py`: how consumers share a stream: claim, pending, ack, delivery count
6. `embedded.py`: the server that Sluice starts when it is given none

Only this package imports `redis`. Only the store uses `scripts.py` and `connection.py`; other rooms use only consumer
groups and, in the supervisor, the embedded server.
"""
