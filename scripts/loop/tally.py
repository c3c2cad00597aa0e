"""A topic's counts of how the stream was decided, as the script in service/store/counts.py keeps them, and the queues
for review that the same script keeps."""

from collections import deque

from service.topics.counts import SLOTS, TopicCounts, bucket_of, counts_of


class Tally:
    def __init__(self, since: int, queued: int) -> None:
        """`since`: how many documents had passed when the topic was created. `queued`: most documents in a queue."""
        self._totals = {"since": since, "named": 0, "accepted": 0, "abstained": 0}
        self._slots: dict[int, list[int]] = {}  # bucket, named, accepted, abstained
        self.likely: deque[int] = deque(maxlen=queued)  # documents, oldest first
        self.uncertain: deque[int] = deque(maxlen=queued)

    @property
    def accepted(self) -> int:
        return self._totals["accepted"]

    def add(self, passed: int, named: int, accepted: list[int], abstained: list[int]) -> None:
        """Counts documents of a batch, after which so many had passed; `named` count as if sent to this topic alone."""
        bucket = bucket_of(passed)
        slot = self._slots.setdefault(bucket % SLOTS, [bucket, 0, 0, 0])
        if slot[0] < bucket:
            slot[:] = [bucket, 0, 0, 0]
        counts = {"named": named, "accepted": len(accepted), "abstained": len(abstained)}
        for place, (name, n) in enumerate(counts.items(), 1):
            self._totals[name] += n
            slot[place] += n
        self.likely += accepted
        self.uncertain += abstained

    def counts(self, passed: int) -> TopicCounts:
        """The counts when so many documents have passed."""
        stored = {name.encode(): b"%d" % n for name, n in self._totals.items()}
        rows = {b"%d" % slot: " ".join(map(str, row)).encode() for slot, row in self._slots.items()}
        return counts_of(stored | rows, passed)
