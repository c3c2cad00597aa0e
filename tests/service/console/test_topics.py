"""Topics in a real browser: made from a sentence, steered, restored, deleted."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from service.schemas.fields import MAX_THRESHOLD
from tests.service.console.browser import DESKTOP, PHONE, Watched, watched
from tests.service.console.conftest import ENERGY, HOSTILE, Service
from tests.support.live import Live
from tests.support.waiting import wait_until_sync

TOPIC = "/console/topics/crude-oil"


@pytest.fixture
def page(browser: Browser, service: Live, api: Service) -> Iterator[Watched]:
    api.topic()
    api.news()
    with watched(browser, service.address) as seen:
        yield seen


def judge_all(api: Service, topic: str = "crude-oil") -> None:
    documents = [
        {"id": api.id(f"g{n}"), "title": f"Wheat {n}", "text": f"Farmers of region {n} sell wheat."} for n in range(8)
    ]
    api.post("/classify", json={"documents": documents})
    judgements = [{"topic": topic, "document": api.id(n), "relevant": True, "by": "Ann"} for n in range(len(ENERGY))]
    judgements += [{"topic": topic, "document": api.id(f"g{n}"), "relevant": False} for n in range(8)]
    assert api.post("/feedback", json={"judgements": judgements}).is_success


def saved(page: Page, form: str = "#settings") -> None:
    with page.expect_navigation():
        page.locator(form).get_by_role("button", name="Save").click()


def test_a_topic_is_made_from_a_sentence_after_a_look_at_what_it_would_do(
    browser: Browser, service: Live, api: Service
) -> None:
    api.news()
    with watched(browser, service.address) as seen:
        page = seen.go("/console/topics")
        page.get_by_label("What is it about?").press_sequentially("OPEC decides about crude oil output")
        expect(page.locator("#begin")).to_contain_text("this would accept")
        expect(page.locator("#begin .examples li").first).to_contain_text("accepted")
        said = page.locator("#begin strong").inner_text()
        page.get_by_role("button", name="Make the topic").click()
        page.wait_for_url("**/console/topics/opec-decides-about-crude-oil-output")
        topic = "opec-decides-about-crude-oil-output"
        ids = [api.id(n) for n in range(len(ENERGY))]
        documents = [{"id": id, "title": title, "text": text} for id, (title, text) in zip(ids, ENERGY, strict=True)]
        answer = api.post("/classify", json={"documents": documents, "topics": [topic], "store": False}).json()
        decisions = [result["decisions"][0]["decision"] for result in answer["results"]]
        assert f"accept {decisions.count('accept')} and be unsure about" in said
        expect(page.locator("#job-list")).to_contain_text("backfill")


def test_the_list_says_how_each_topic_is_doing(page: Watched, api: Service) -> None:
    api.topic(id="football", name="Football", query="football match", goal={"min_precision": 0.9})
    shown = page.go("/console/topics")
    row = shown.get_by_role("row").filter(has_text="Football")
    expect(row).to_contain_text("still learning")
    expect(row).to_contain_text("nothing yet")
    expect(shown.get_by_role("row").filter(has_text="Crude oil")).to_contain_text("in a day")
    expect(shown.locator("svg.spark rect").first).to_be_visible()


def test_figures_are_drawn_with_their_intervals_and_written_beside(page: Watched, api: Service) -> None:
    judge_all(api)
    shown = page.go(TOPIC)
    for caption in ("Precision, with its interval", "Scores of the newest", "Error that is left"):
        expect(shown.get_by_role("figure").filter(has_text=caption).locator("canvas")).to_be_visible()
    shown.get_by_text("The same as a table").click()
    expect(shown.get_by_role("region", name="Figures over time")).to_contain_text("%")
    shown.get_by_role("button", name="By time").click()
    expect(shown.get_by_role("button", name="By time")).to_have_attribute("aria-pressed", "true")


def test_settings_say_what_they_would_change_and_then_change_it(page: Watched, api: Service) -> None:
    judge_all(api)
    shown = page.go(TOPIC)
    shown.get_by_label("Reject always, if").press_sequentially("title:opec")
    expect(shown.locator("#preview")).to_contain_text("judged documents")
    expect(shown.locator("#preview .examples")).to_contain_text("OPEC meets")
    assert api.get("/topics/crude-oil").json()["rules"]["reject_if"] is None
    shown.get_by_label("Precision at least").fill("90")
    saved(shown)
    topic = api.get("/topics/crude-oil").json()
    assert topic["rules"] == {"accept_if": None, "reject_if": "title:opec"}
    assert topic["goal"]["min_precision"] == 0.9
    assert topic["query"] == "crude oil OPEC barrels output price"


def test_a_rule_that_is_wrong_is_said_at_its_character_while_it_is_written(page: Watched, api: Service) -> None:
    shown = page.go(TOPIC)
    shown.get_by_label("Accept always, if").press_sequentially("oil AND (")
    expect(shown.locator("#preview .wrong")).to_contain_text("(at character")
    page.expect("422")
    shown.get_by_label("Accept always, if").fill("oil AND gas")
    expect(shown.locator("#preview .wrong")).to_have_count(0)


def test_words_are_pinned_banned_and_freed(page: Watched, api: Service) -> None:
    shown = page.go(TOPIC)
    with shown.expect_navigation():
        shown.get_by_role("button", name="Ban price").click()
    with shown.expect_navigation():
        shown.get_by_role("button", name="Pin opec").click()
    assert api.get("/topics/crude-oil").json()["terms"] == {"pin": ["opec"], "ban": ["price"]}
    with shown.expect_navigation():
        shown.get_by_role("button", name="Free price").click()
    assert api.get("/topics/crude-oil").json()["terms"] == {"pin": ["opec"], "ban": []}


def test_an_old_version_is_restored_and_a_judgement_taken_back(page: Watched, api: Service) -> None:
    judge_all(api)
    before = api.get("/topics/crude-oil").json()["status"]
    shown = page.go(TOPIC)
    row = shown.get_by_role("row").filter(has_text="OPEC meets")
    expect(row).to_contain_text("Ann")
    with shown.expect_navigation():
        row.get_by_role("button").click()
    assert api.id(0) not in api.judgements()
    with shown.expect_navigation():
        shown.get_by_role("button", name="Restore version 1", exact=True).click()
    after = api.get("/topics/crude-oil").json()["status"]
    assert after["version"] == before["version"] + 2
    assert after["judged"] == {"relevant": 0, "irrelevant": 0}


def test_a_job_is_started_and_followed(page: Watched, api: Service) -> None:
    shown = page.go(TOPIC)
    shown.get_by_role("button", name="Look at the remembered documents again").click()
    expect(shown.locator("#job-list")).to_contain_text("queued")  # nobody runs jobs here
    (job,) = (each for each in api.get("/jobs?topic=crude-oil").json()["items"] if each["state"] == "queued")
    api.delete(f"/jobs/{job['id']}")
    expect(shown.locator("#job-list")).to_contain_text("cancelled")  # it asks again by itself


def test_routes_show_their_health(page: Watched, api: Service) -> None:
    api.put("/topics/crude-oil/routes", json={"routes": [{"to": "stream", "key": "elsewhere"}]})
    expect(page.go(TOPIC).locator("#routes")).to_contain_text("stream: elsewhere; 0 delivered")


def test_a_topic_is_deleted_only_by_typing_its_id(page: Watched, api: Service) -> None:
    shown = page.go(TOPIC)
    shown.get_by_role("button", name="Delete it …").click()
    shown.get_by_label("Type its id").fill("crude")
    shown.get_by_role("dialog").get_by_role("button", name="Delete it").click()
    expect(shown.get_by_text("To delete this topic for good, type its id: crude-oil.")).to_be_visible()
    page.expect("422")
    shown.go_back()
    shown.get_by_role("button", name="Delete it …").click()
    shown.get_by_label("Type its id").fill("crude-oil")
    shown.get_by_role("dialog").get_by_role("button", name="Delete it").click()
    shown.wait_for_url("**/console/topics")
    assert wait_until_sync(lambda: not api.get("/topics").json()["items"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_everybody_can_read_them_and_hostile_texts_are_inert(
    browser: Browser, service: Live, api: Service, scheme: str, size: tuple[int, int]
) -> None:
    name = "<script>window.evil = 2</script>\"'>"
    api.topic(id="evil", name=name, query="<img src=x onerror=window.evil=3> crude oil OPEC", goal={"max_error": 0.1})
    api.news(HOSTILE)
    api.post("/feedback", json={"topic": "evil", "document": HOSTILE["id"], "relevant": True, "by": "<i>me</i>"})
    judge_all(api, "evil")
    with watched(browser, service.address, scheme, size) as seen:
        page = seen.go("/console/topics")
        expect(page.locator("svg.spark")).to_have_count(1)
        page.get_by_label("What is it about?").press_sequentially("evil window onerror <b>")
        expect(page.locator("#begin .examples")).to_contain_text("<script>window.evil = 1</script>")
        seen.check_access()
        page = seen.go("/console/topics/evil")
        expect(page.get_by_role("heading", level=1)).to_have_text(name)
        expect(page.locator(".chart canvas").first).to_be_visible()
        page.get_by_label("Reject always, if").press_sequentially("rates")
        expect(page.locator("#preview p").first).not_to_contain_text("Change something")
        seen.check_access()
        assert page.evaluate("window.evil") is None
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.get_by_role("button", name="Delete it …").click()
        seen.check_access()


def test_no_cut_is_drawn_where_none_is() -> None:
    assert MAX_THRESHOLD > 3e38  # what the page takes for no cut
