"""The names of keys: those of a topic so far."""

PARTS = ("topic", "log", "judged", "model", "versions", "tally", "likely", "uncertain", "skipped", "known")


def topic_key(topic: str, part: str) -> str:
    return f"sluice:{{{topic}}}:{part}"
