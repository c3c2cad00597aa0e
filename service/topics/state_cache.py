"""Topic states kept in memory, up to a number of bytes; a topic that was dropped is read from its log again."""

from service.topics.state import TopicState

MAX_BYTES = 256_000_000


class StateCache:
    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._states: dict[str, TopicState] = {}  # the least recently put first
        self._sizes: dict[str, int] = {}
        self._bytes = 0

    def get(self, topic: str) -> TopicState | None:
        return self._states.get(topic)

    def put(self, state: TopicState) -> None:
        """Keeps the state, at the size that it has now, and drops others until there is room."""
        self.remove(state.topic)
        self._states[state.topic] = state
        self._sizes[state.topic] = state.nbytes
        self._bytes += state.nbytes
        while len(self._states) > 1 and self._bytes > self._max_bytes:
            self.remove(next(iter(self._states)))

    def remove(self, topic: str) -> None:
        self._states.pop(topic, None)
        self._bytes -= self._sizes.pop(topic, 0)

    def clear(self) -> None:
        for topic in list(self._states):
            self.remove(topic)
