"""An event comes back from its stored fields."""

import pytest

from service.store.events import Event


@pytest.mark.parametrize(
    ("event", "stored"),
    [
        (Event("judged", 1, 0, document="d", relevant=True, features=b"f", judge="ann"), {"bag": b"f", "by": b"ann"}),
        (Event("created", 1, 0, settings="s", features=b"f"), {"bag": b"f", "settings": b"s"}),
        (Event("edited", 1, 0, settings="s", features=b"f", refold=True), {"bag": b"f", "anew": b"True"}),
        (Event("restored", 1, 0, settings="s", restores=7), {"version": b"7"}),
        (
            Event("published", 1, 0, model=b"m", words=b"w", job="j", made_from=7),
            {"bag": b"w", "by": b"j", "version": b"7", "model": b"m"},
        ),
        (Event("compacted", 1, 0, floor=7, kept=3), {"version": b"7", "kept": b"3"}),
    ],
    ids=lambda value: value.kind if isinstance(value, Event) else "",
)
def test_an_event_is_stored_under_the_names_it_always_had(event: Event, stored: dict[str, bytes]) -> None:
    """Attributes of one meaning each; the stored names are older, and some mean one thing or another by the kind."""
    fields = event.to_fields()
    assert fields.items() >= stored.items()
    assert Event.from_fields(0, {name.encode(): value for name, value in fields.items()}) == event
    assert Event.from_stored(0, event.stored()) == event
