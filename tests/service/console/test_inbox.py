"""The inbox in a real browser: by keys, by clicks, by several at once; when requests fail, and with hostile texts."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.service.console.browser import DESKTOP, PHONE, Watched, watched
from tests.service.console.conftest import ENERGY, HOSTILE, Service
from tests.support.live import Live
from tests.support.waiting import wait_until_sync

ITEMS = "#items > .item:not(.leaving)"
JUDGING = "**/console/judgements"


@pytest.fixture
def inbox(browser: Browser, service: Live, api: Service) -> Iterator[Watched]:
    api.topic()
    api.news()
    with watched(browser, service.address) as seen:
        seen.go("/")
        expect(seen.page.locator(ITEMS)).to_have_count(len(ENERGY))
        yield seen


def titles(page: Page) -> list[str]:
    return [title.strip() for title in page.locator(f"{ITEMS} h3").all_inner_texts()]


def judged(api: Service, expected: dict[str, bool]) -> None:
    assert wait_until_sync(lambda: api.judgements() == expected)


def test_keys_judge_move_skip_and_undo(inbox: Watched, api: Service) -> None:
    page = inbox.page
    first, second, third, *_ = titles(page)
    ids = {title: api.id(i) for i, (title, _) in enumerate(ENERGY)}
    page.keyboard.press("j")
    page.keyboard.press("y")
    expect(page.locator(ITEMS)).to_have_count(4)
    expect(page.locator("#judged li")).to_have_count(1)
    expect(page.locator(".topics .state")).to_contain_text("1 judged")
    judged(api, {ids[first]: True})
    assert page.evaluate("document.activeElement.querySelector('h3').innerText.trim()") == second  # the next has focus
    page.keyboard.press("n")
    expect(page.locator("#judged li")).to_have_count(2)
    judged(api, {ids[first]: True, ids[second]: False})
    page.keyboard.press("s")
    expect(page.locator("#judged li")).to_have_count(3)
    page.keyboard.press("u")  # the last judgement; what was skipped was not judged
    expect(page.locator("#judged li")).to_have_count(2)
    judged(api, {ids[first]: True})
    assert titles(page)[0] == second
    page.keyboard.press("u")
    expect(page.locator(".topics .state")).to_contain_text("0 judged")
    judged(api, {})
    page.reload()
    assert set(titles(page)) == set(ids) - {third}  # skipped for good


def test_the_mouse_does_the_same_and_the_name_is_kept(inbox: Watched, api: Service) -> None:
    page = inbox.page
    page.get_by_label("Your judgements are signed").fill("Ann Ö")
    page.get_by_role("button", name="Save").click()
    page.wait_for_load_state()
    title = titles(page)[1]
    page.locator(ITEMS).filter(has_text=title).get_by_role("button", name="Not relevant").click()
    expect(page.locator("#said")).to_contain_text(f"Not relevant: {title}")
    (judgement,) = api.get("/topics/crude-oil/judgements").json()["items"]
    assert (judgement["title"], judgement["relevant"], judgement["by"]) == (title, False, "Ann Ö")
    page.get_by_role("button", name=f"Undo: {title}").click()
    expect(page.locator(ITEMS)).to_have_count(5)
    judged(api, {})


def test_several_are_judged_at_once(inbox: Watched, api: Service) -> None:
    page = inbox.page
    for key in ("j", "x", "j", "x"):
        page.keyboard.press(key)
    expect(page.locator("#selected")).to_have_text("2 selected")
    page.keyboard.press("j")
    page.keyboard.press("y")
    expect(page.locator(ITEMS)).to_have_count(3)
    expect(page.locator("#said")).to_have_text("Relevant: 2 documents.")
    assert wait_until_sync(lambda: list(api.judgements().values()) == [True, True])
    expect(page.locator("#bulk")).to_be_hidden()


def test_what_is_judged_leaves_at_once_and_comes_back_if_the_request_fails(inbox: Watched, api: Service) -> None:
    page = inbox.page
    held: list[Route] = []
    page.route(JUDGING, lambda route: held.append(route))

    def next_held() -> Route:
        while not held:
            page.wait_for_timeout(20)
        return held.pop()

    page.keyboard.press("j")
    before = titles(page)
    page.keyboard.press("y")
    expect(page.locator(ITEMS)).to_have_count(4)  # nothing was answered yet
    next_held().abort()
    expect(page.locator(ITEMS)).to_have_count(5)
    expect(page.locator("#said")).to_contain_text("The service does not answer; nothing was changed.")
    assert titles(page) == before
    inbox.expect("ERR_FAILED")
    inbox.expect("htmx:sendError")
    inbox.expect("htmx:afterRequest")
    page.keyboard.press("y")
    expect(page.locator(ITEMS)).to_have_count(4)
    sentence = "<p>The store is full.</p>"
    next_held().fulfill(status=503, headers={"Content-Type": "text/html; charset=utf-8"}, body=sentence)
    expect(page.locator("#said")).to_have_text("The store is full.")
    expect(page.locator(ITEMS)).to_have_count(5)
    inbox.expect("503")
    page.unroute(JUDGING)
    page.keyboard.press("y")
    expect(page.locator("#judged li")).to_have_count(1)
    assert len(api.judgements()) == 1
    expect(page.locator("#said.wrong")).to_have_count(0)


def test_the_last_one_judged_leaves_a_sentence(inbox: Watched, api: Service) -> None:
    page = inbox.page
    for _ in ENERGY:
        page.keyboard.press("y")
    expect(page.get_by_text("Nothing waits for a judgement here.")).to_be_visible()
    assert wait_until_sync(lambda: len(api.judgements()) == len(ENERGY))


def test_links_open_the_original_and_the_full_text_comes_on_demand(inbox: Watched) -> None:
    page = inbox.page
    inbox.context.route("https://news.example/**", lambda route: route.fulfill(body="the original"))
    page.keyboard.press("j")
    link = page.locator(f"{ITEMS} .original").first
    assert link.get_attribute("rel") == "noopener noreferrer"
    with inbox.context.expect_page() as opened:
        page.keyboard.press("o")
    assert opened.value.url.startswith("https://news.example/")
    assert opened.value.evaluate("[document.referrer, window.opener]") == ["", None]
    inbox.expect("asked another host: https://news.example/")  # because somebody opened it
    page.bring_to_front()
    page.keyboard.press("f")
    expect(page.locator(".fulltext")).to_be_visible()
    assert page.locator(".fulltext mark").count() > 2
    page.keyboard.press("f")
    expect(page.locator(".fulltext")).to_be_hidden()


def test_keys_can_be_read_and_switched_off(inbox: Watched, api: Service) -> None:
    page = inbox.page
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("it is not relevant")
    page.get_by_label("Shortcuts are on").uncheck()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("y")
    page.keyboard.press("j")
    expect(page.locator(ITEMS)).to_have_count(5)
    assert not api.judgements()


def test_the_best_come_first_of_one_topic_or_of_what_is_unsure(inbox: Watched, api: Service) -> None:
    page = inbox.page
    page.get_by_role("link", name="Best first").click()
    page.wait_for_url("**order=best**")
    ranked = [item["title"] for item in api.get("/topics/crude-oil/ranked").json()["items"]]
    assert titles(page) == ranked
    page.get_by_role("link", name="Unsure", exact=True).click()
    page.wait_for_url("**show=abstain**")
    expect(page.locator("#nothing")).to_contain_text("among what is unsure")
    page.locator(".topics").get_by_role("link", name="Crude oil").click()
    page.wait_for_url("**topic=crude-oil**")


def test_near_duplicates_are_folded_under_the_first(browser: Browser, service: Live, api: Service) -> None:
    api.topic()
    api.news()
    title, text = ENERGY[0]
    for n in range(2):
        api.post("/classify", json={"documents": [{"id": api.id(f"copy{n}"), "title": title, "text": f"{text} {n}"}]})
    with watched(browser, service.address) as seen:
        page = seen.go("/")
        expect(page.locator(ITEMS)).to_have_count(len(ENERGY))
        item = page.locator(ITEMS).filter(has_text=title)
        item.get_by_text("2 near-duplicates").click()
        expect(item.locator("details li")).to_have_count(2)
        item.get_by_role("button", name="Relevant", exact=True).or_(item.locator("button.yes")).first.click()
        expect(page.locator("#judged li")).to_have_count(1)
        page.reload()
        expect(page.locator(ITEMS)).to_have_count(len(ENERGY) - 1)  # its copies do not come back


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_hostile_texts_are_inert_and_everybody_can_read_the_page(
    browser: Browser, service: Live, api: Service, scheme: str, size: tuple[int, int]
) -> None:
    api.topic(goal={"min_precision": 0.9})
    api.topic(id="evil", name="<script>window.evil = 2</script>")
    api.news(HOSTILE)
    with watched(browser, service.address, scheme, size) as seen:
        page = seen.go("/?topic=crude-oil")
        item = page.locator(ITEMS).filter(has_text="<script>window.evil = 1</script>")
        expect(item.locator("a.original")).to_have_count(0)
        item.locator("button.full").click()
        expect(item.locator(".fulltext")).to_contain_text("{{ 7 * 7 }}")
        seen.check_access()
        item.locator("button.no").click()
        expect(page.locator("#judged li")).to_have_count(1)
        page.locator("#judged [data-undo] button").click()
        expect(page.locator("#judged li")).to_have_count(0)
        expect(item).to_have_count(1)
        assert page.evaluate("window.evil") is None
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.keyboard.press("?")
        seen.check_access()
