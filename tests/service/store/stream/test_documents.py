"""A remembered document comes back whole, whatever its length; the oldest are forgotten."""

import zlib

from hypothesis import given
from hypothesis import strategies as st

from service.schemas import Document
from service.store.stream.documents import MIN_COMPRESSED, PARTITIONS, RememberCall, pack, unpack
from service.store.topics import Store

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=50)


@given(WORDS, WORDS, st.integers(0, 1 << 45), st.booleans())
def test_it_comes_back_whole_with_the_time_when_it_came(title: str, text: str, now_ms: int, everywhere: bool) -> None:
    short, long = Document(title=title, text=text), Document(title=title, text=text + "long " * MIN_COMPRESSED)
    for document, blob in zip((short, long), pack(["a", "b"], [short, long], now_ms, everywhere).values(), strict=True):
        remembered = unpack(blob)
        assert (remembered.document.title, remembered.document.text) == (document.title, document.text)
        assert (remembered.came_ms, remembered.everywhere) == (now_ms, everywhere)
        assert len(blob) < 2 * MIN_COMPRESSED


def test_a_short_one_that_is_compressed_is_read_too() -> None:
    text = Document(id="d", text="oil").model_dump_json().encode()
    blob = (7).to_bytes(8) + zlib.compress(text, 1)
    assert unpack(blob).document == Document(id="d", text="oil")


def test_one_that_was_stored_before_documents_had_a_url_is_read_too() -> None:
    text = b'{"id":"d","title":"OPEC","text":"oil","source":"wire","published":null,"metadata":null}'
    assert unpack((7).to_bytes(8) + text).document == Document(id="d", title="OPEC", text="oil", source="wire")


def test_all_that_was_said_of_one_comes_back() -> None:
    about = {"source": "wire", "published": "today", "url": "https://example.org/1", "author": "A", "language": "en"}
    document = Document.model_validate({"id": "d", "title": "OPEC", "metadata": {"a": None, "b": []}} | about)
    assert unpack(pack(["d"], [document], 7, True)["d"]).document == document


async def remember(redis_store: Store, documents: dict[str, bytes], kept: int) -> set[str]:
    """Which ones are new."""
    remembering = RememberCall(documents, kept)
    return remembering.results(await redis_store.run(remembering.cmds)).new


async def test_documents_are_remembered_once_and_the_oldest_are_forgotten(redis_store: Store) -> None:
    first = {f"d{i}": b"%d" % i for i in range(200)}
    assert await remember(redis_store, first, 10_000) == set(first)
    assert await remember(redis_store, first, 10_000) == set()
    assert await redis_store.documents.load(["d7", "none"]) == [b"7", None]
    await remember(redis_store, {f"e{i}": b"e" for i in range(3000)}, 320)
    assert await redis_store.documents.load(["d7"]) == [None]
    kept = [blob for blob in await redis_store.documents.load([f"e{i}" for i in range(3000)]) if blob]
    assert len(kept) == 320
    assert 320 % PARTITIONS == 0


async def test_very_many_documents_at_once_are_remembered_and_the_newest_of_them_kept(redis_store: Store) -> None:
    """More in a partition than a command may have arguments; among them some that came before, at an earlier time."""
    early, late = (1).to_bytes(8), (2).to_bytes(8)
    many = {f"d{i}": late + b"%d" % i for i in range(150_000)}
    again = [f"d{i}" for i in range(0, 150_000, 1000)]
    await remember(redis_store, dict.fromkeys(again, early + b"before"), 1_000_000)
    assert await remember(redis_store, many, 1_000_000) == many.keys() - set(again)
    assert await redis_store.documents.load(["d1000", "d1001"]) == [early + b"1000", late + b"1001"]
    newer = [f"e{i}" for i in range(150_000)]
    await remember(redis_store, dict.fromkeys(newer, late), 20 * PARTITIONS)
    assert not any(await redis_store.documents.load(list(many)))
    kept = [i for i, blob in enumerate(await redis_store.documents.load(newer)) if blob]
    assert len(kept) == 20 * PARTITIONS
    assert min(kept) > 149_000


async def test_what_came_changed_and_was_forgotten_is_in_the_log_in_this_order(redis_store: Store) -> None:
    stamp, other = (1).to_bytes(8), (2).to_bytes(8)
    await remember(redis_store, {"a": stamp + b"1", "b": stamp + b"1"}, 10_000)
    await remember(redis_store, {"a": other + b"1", "b": other + b"2"}, 10_000)
    many = {f"d{i}": stamp for i in range(2000)}
    await remember(redis_store, many, 160)
    standing: dict[str, list[str]] = {}
    for partition, (oldest, newest) in enumerate(await redis_store.documents.change_spans()):
        changes = await redis_store.documents.changes_after(partition, "0-0", 1000)
        assert (changes[0].place, changes[-1].place) == (oldest, newest)
        for change in changes:
            assert change.put or change.gone
            for document in change.put:
                standing.setdefault(document, []).append("put")
            for document in change.gone:
                standing[document].append("gone")
    kept = [document for document, said in standing.items() if said[-1] == "put"]
    assert {"a": standing["a"], "b": standing["b"]} == {"a": ["put", "gone"], "b": ["put", "put", "gone"]}
    assert len(kept) == 160
    assert all(await redis_store.documents.load(kept))


async def test_a_store_has_a_name_of_its_own_until_it_is_emptied(redis_store: Store) -> None:
    name = await redis_store.documents.store_name()
    assert await redis_store.documents.store_name() == name
    await redis_store.connection.redis.flushall()
    assert await redis_store.documents.store_name() != name
