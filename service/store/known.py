"""A known item, as the store keeps it: its title and the features that a model is tested with."""

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KnownDocument:
    title: str
    bag: bytes

    def to_bytes(self) -> bytes:
        return json.dumps(self.title).encode() + b"\n" + self.bag

    @classmethod
    def from_bytes(cls, blob: bytes) -> "KnownDocument":
        title, _, bag = blob.partition(b"\n")
        return cls(json.loads(title), bag)
