"""Items and the documents they become: the same id at every poll, whatever a publisher does."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from service.schemas import Document
from service.sources.items import Item, document, keyed

words = st.text(alphabet="ab ", max_size=3)
links = st.sampled_from(["", "https://example.org/1", "https://example.org/2"])
items = st.builds(Item, guid=words, url=links, title=words, text=words)


@given(st.lists(items, max_size=8))
def test_every_item_with_words_is_there_once_and_can_be_a_document(offered: list[Item]) -> None:
    found = keyed(offered)
    assert len({each.key for each in found}) == len(found)
    assert all(each.item.title.strip() or each.item.text.strip() for each in found)
    documents = [document("news", "News", each, 1000) for each in found]
    assert all(Document.model_validate(each.model_dump()) == each for each in documents)


@given(st.lists(items, max_size=6), st.randoms())
def test_keys_do_not_depend_on_the_order(offered: list[Item], chance: "st.random.Random") -> None:  # type: ignore[name-defined]
    shuffled = chance.sample(offered, len(offered))
    assert {each.key for each in keyed(offered)} == {each.key for each in keyed(shuffled)}


def test_an_item_with_a_guid_keeps_its_key_when_its_words_and_its_link_change() -> None:
    (before,) = keyed([Item(guid="1", url="https://a/1", title="Oil", text="x")])
    (after,) = keyed([Item(guid="1", url="https://a/2", title="Oil!", text="y")])
    assert before.key == after.key
    assert before.print != after.print


def test_items_that_share_a_guid_are_told_apart_by_their_links() -> None:
    found = keyed([Item(guid="home", url=f"https://a/{n}", title="News") for n in range(3)])
    assert len({each.key for each in found}) == 3


def test_the_oldest_comes_first() -> None:
    days = [datetime(2026, 11, day, tzinfo=UTC) for day in (2, 3, 1)]
    dated = [Item(guid=str(day), title="x", published=day) for day in days]
    assert [each.item.published for each in keyed(dated)] == sorted(days)
    undated = [Item(guid=str(n), title="x") for n in range(3)]  # newest first, as feeds are
    assert [each.item.guid for each in keyed(undated)] == ["2", "1", "0"]


def test_what_is_too_long_is_cut() -> None:
    (found,) = keyed([Item(guid="1", title="t" * 5000, text="x" * 5000, author="a" * 5000, tags=("y" * 5000,) * 99)])
    cut = document("news", "f" * 5000, found, 2000)
    assert (len(cut.title), len(cut.text)) == (1000, 2000)
    Document.model_validate(cut.model_dump())
