"""What is new: each item once, again when it has changed, and never again because it was forgotten too early."""

from hypothesis import given
from hypothesis import strategies as st

from service.sources.items import Item, Keyed
from service.sources.seen import REFRESH_MS, compare

DAY_MS = 86_400_000
KEPT = 4
offers = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from("12"), max_size=6)


def keyed(offer: dict[str, str]) -> list[Keyed]:
    return [Keyed(key, print, Item(title=key)) for key, print in offer.items()]


@given(st.lists(st.tuples(offers, st.booleans()), max_size=12))
def test_items_are_passed_on_when_they_are_new_or_have_changed(polls: list[tuple[dict[str, str], bool]]) -> None:
    """With as much room as it takes. A poll that dies before it commits is repeated, and finds the same."""
    seen: dict[str, str] = {}
    last: dict[str, str] = {}
    for n, (offer, dies) in enumerate(polls):
        change = compare(seen, keyed(offer), n * DAY_MS, kept=100)
        assert {each.offered.key for each in change.fresh} == {key for key in offer if last.get(key) != offer[key]}
        assert all(each.update == (each.offered.key in last) for each in change.fresh)
        if not dies:
            seen = {key: value for key, value in (seen | dict(change.put)).items() if key not in change.drop}
            last |= offer


@given(st.lists(offers, max_size=12))
def test_what_is_still_offered_is_never_forgotten_and_the_rest_is_bounded(polls: list[dict[str, str]]) -> None:
    seen: dict[str, str] = {}
    before: dict[str, str] = {}
    for n, offer in enumerate(polls):
        change = compare(seen, keyed(offer), n * DAY_MS, KEPT)
        again = {each.offered.key for each in change.fresh} & before.keys()
        assert not {key for key in again if before[key] == offer[key]}
        seen = {key: value for key, value in (seen | dict(change.put)).items() if key not in change.drop}
        assert offer.keys() <= seen.keys()
        assert len(seen) <= max(KEPT, len(offer))
        before = offer


def test_a_poll_that_finds_nothing_new_writes_nothing() -> None:
    offer = keyed({"a": "1", "b": "1"})
    seen = dict(compare({}, offer, 1000).put)
    assert compare(seen, offer, 1000 + REFRESH_MS).put == {}
    assert compare(seen, offer, 1001 + REFRESH_MS).put.keys() == {"a", "b"}
