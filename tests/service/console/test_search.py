"""Search, in a real browser: found by words, judged on the spot, or the words made a topic."""

import pytest
from playwright.sync_api import Browser, expect

from tests.service.console.browser import DESKTOP, PHONE, watched
from tests.service.console.conftest import HOSTILE, Service
from tests.support.live import Live


def test_what_is_found_is_marked_and_can_be_judged(browser: Browser, service: Live, api: Service) -> None:
    topic = api.topic()
    api.news({"id": api.id("grain"), "title": "Harvest", "text": "A drought in Kansas; the wheat harvest is small."})
    with watched(browser, service.address) as seen:
        page = seen.go("/")
        page.get_by_role("link", name="Search").click()
        page.get_by_label("Words, ").fill('"wheat harvest" -oil')
        page.get_by_label("Topic", exact=True).select_option("")
        page.get_by_role("button", name="Search").click()
        found = page.locator("li.item").first
        expect(found).to_contain_text("Harvest")
        expect(found.locator("p mark")).to_have_text("wheat harvest")
        expect(page.get_by_text("Choose a topic to judge")).to_be_visible()
        page.get_by_label("Topic", exact=True).select_option(topic)
        page.get_by_label("What the topic decided").select_option("reject")
        page.get_by_role("button", name="Search").click()
        page.locator("li.item").first.get_by_role("button", name="Relevant", exact=True).click()
        expect(page.locator("li.item").first).to_contain_text("relevant")
        expect(page.get_by_label("Words, ")).to_have_value('"wheat harvest" -oil')
        assert api.judgements(topic) == {api.id("grain"): True}


def test_the_words_can_be_made_a_topic(browser: Browser, service: Live, api: Service) -> None:
    with watched(browser, service.address) as seen:
        page = seen.go("/console/search?q=wheat+harvest")
        page.get_by_role("button", name="Make these words a topic").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("wheat harvest")
    assert [topic["query"] for topic in api.get("/topics").json()["items"]] == ["wheat harvest"]


def test_a_decision_without_a_topic_is_refused_in_a_sentence(browser: Browser, service: Live, api: Service) -> None:
    with watched(browser, service.address) as seen:
        page = seen.go("/console/search?q=oil&decision=reject")
        expect(page.get_by_text("Choose the topic whose decision you mean, too.")).to_be_visible()
        seen.expect("422")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_everybody_can_read_it_and_hostile_texts_are_inert(
    browser: Browser, service: Live, api: Service, scheme: str, size: tuple[int, int]
) -> None:
    topic = api.topic()
    api.news(HOSTILE | {"id": api.id("evil")})
    with watched(browser, service.address, scheme, size) as seen:
        page = seen.go(f"/console/search?q=oil&topic={topic}")
        expect(page.get_by_text("<script>")).to_be_visible()
        seen.check_access()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate("window.evil") is None
