"""Debian's chromium, driven by Playwright, and pages that are watched: what they report, and whom they ask.

Without chromium the tests are skipped, with a line that says so; with CI=true that is a failure, because there
`scripts/test` installs it.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect, sync_playwright

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
AXE = Path(__file__).parent / "axe" / "axe.min.js"
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
PATIENCE_MS = 60_000
DESKTOP, PHONE = (1280, 900), (375, 740)


@contextmanager
def chromium() -> Iterator[Browser]:
    program = shutil.which("chromium")
    if program is None:
        missing = "CHROMIUM IS MISSING, SO NO PAGE WAS TESTED: apt-get install chromium"
        # People without chromium may run all other tests; where CI=true it must be there.
        pytest.fail(missing) if os.environ.get("CI") == "true" else pytest.skip(missing)
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=OPTIONS)
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A page that nothing may go wrong on. `check` says what did: errors, and requests to other hosts."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.context = context
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self._host = urlsplit(address).netloc
        self._wrong: list[str] = []
        self._expected: list[str] = []
        self._address = address
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self._wrong.append(f"error: {error}"))
        self.context.on("request", self._asked)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._wrong.append(f"console: {message.text}")

    def _asked(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.netloc != self._host:
            self._wrong.append(f"asked another host: {request.url}")

    def go(self, path: str) -> Page:
        self.page.goto(self._address + path)
        return self.page

    def expect(self, words: str) -> None:
        """There is to be a report with these words: of an error that the test causes."""
        self._expected.append(words)

    def check(self) -> None:
        unexpected = [wrong for wrong in self._wrong if not any(words in wrong for words in self._expected)]
        assert not unexpected, unexpected
        assert all(any(words in wrong for wrong in self._wrong) for words in self._expected), self._wrong

    def check_access(self) -> None:
        """What axe finds wrong with the page as it is."""
        self.page.evaluate(AXE.read_text())
        found = self.page.evaluate("rules => axe.run(document, rules)", RULES)
        violations = [
            f"{violation['id']}: {violation['help']}: {[node['html'][:200] for node in violation['nodes'][:5]]}"
            for violation in found["violations"]
        ]
        assert not violations, violations


@contextmanager
def watched(
    browser: Browser, address: str, scheme: str = "light", size: tuple[int, int] = DESKTOP
) -> Iterator[Watched]:
    """A page in a fresh profile; whatever was reported on it fails the test at the end."""
    context = browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light", viewport={"width": size[0], "height": size[1]}
    )
    try:
        seen = Watched(context, address)
        yield seen
        seen.check()
    finally:
        context.close()
