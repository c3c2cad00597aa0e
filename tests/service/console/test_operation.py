"""The first visit, sources, operation and the manual, in a real browser."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser, expect

from tests.service.console.browser import DESKTOP, PHONE, watched
from tests.service.console.conftest import Service
from tests.support.live import Live

FEED = b"""<?xml version="1.0"?><rss version="2.0"><channel>
<title>Wire &lt;script&gt;window.evil=1&lt;/script&gt;</title>
<item><guid>1</guid><title>OPEC cuts crude oil output</title><link>https://news.example/1</link>
<description>Barrels of crude oil rose in price.</description></item></channel></rss>"""


class _Feed(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/rss+xml")
        self.end_headers()
        self.wfile.write(FEED)

    def log_message(self, format: str, *values: object) -> None: ...


@pytest.fixture
def feed() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Feed)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/feed.xml"
    finally:
        server.shutdown()
        server.server_close()


def test_a_feed_and_a_sentence_make_a_topic_and_a_source(
    browser: Browser, service: Live, api: Service, feed: str
) -> None:
    for source in api.get("/sources").json()["items"]:
        api.delete(f"/sources/{source['id']}")
    with watched(browser, service.address) as seen:
        page = seen.go("/")
        page.get_by_label("Addresses of feeds").fill(feed)
        page.get_by_label("What matters to you?").fill("crude oil OPEC output")
        page.get_by_role("button", name="Read them").click()
        expect(page.locator(".topics")).to_contain_text("crude oil OPEC output")
        page.get_by_role("link", name="Sources").click()
        expect(page.get_by_role("row").filter(has_text=feed)).to_contain_text("waiting")
        page.get_by_role("button", name="Look now").click()
        row = page.get_by_role("row").filter(has_text="Wire <script>")
        expect(row).to_contain_text("ok")
        seen.check_access()
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("row").filter(has_text="Wire")).to_contain_text("paused")
        page.get_by_role("button", name="Go on").click()
        expect(page.get_by_role("row").filter(has_text="Wire")).to_contain_text("ok")
        page.get_by_role("button", name="Delete").click()
        expect(page.get_by_text("No source yet")).to_be_visible()
        assert page.evaluate("window.evil") is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_everybody_can_read_them(
    browser: Browser, service: Live, api: Service, scheme: str, size: tuple[int, int]
) -> None:
    api.topic()
    with watched(browser, service.address, scheme, size) as seen:
        for path in ("/console/start", "/console/sources", "/console/operation"):
            page = seen.go(path)
            seen.check_access()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


def test_operation_looks_again_by_itself(browser: Browser, service: Live, api: Service) -> None:
    topic = api.topic()
    with watched(browser, service.address) as seen:
        page = seen.go("/console/operation")
        expect(page.get_by_text("No topic has a route.")).to_be_visible()
        api.put(f"/topics/{topic}/routes", json={"routes": [{"to": "stream", "key": "elsewhere"}]})
        expect(page.locator("#now")).to_contain_text("stream: elsewhere; 0 delivered")


def test_the_manual_is_drawn_without_another_host(browser: Browser, service: Live, api: Service) -> None:
    with watched(browser, service.address) as seen:
        page = seen.go("/docs")
        page.locator("#operations-tag-documents").click()
        expect(page.locator("#operations-documents-classify")).to_contain_text("/classify")
        page.locator("#operations-tag-health").click()
        operation = page.locator("#operations-health-readyz")
        operation.get_by_role("button").first.click()
        operation.get_by_role("button", name="Try it out").click()
        operation.get_by_role("button", name="Execute").click()
        expect(operation.locator(".live-responses-table")).to_contain_text('"status": "ok"')


def test_feeds_that_cannot_be_are_refused_in_a_sentence(browser: Browser, service: Live, api: Service) -> None:
    with watched(browser, service.address) as seen:
        page = seen.go("/console/start")
        page.get_by_label("Addresses of feeds").fill("javascript:alert(1)")
        page.get_by_role("button", name="Read them").click()
        expect(page.get_by_text("This must be a URL that begins with https:// or http://")).to_be_visible()
        seen.expect("422")
