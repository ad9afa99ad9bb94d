"""A real Chromium.

SHMBROKER_SCREENSHOTS=DIR keeps what it saw.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, LocatorAssertions, Page

PATIENCE_MS = 60_000
PHONE = {"width": 390, "height": 844}
SCREEN = {"width": 1280, "height": 900}
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@contextmanager
def chromium() -> Iterator[Browser]:
    """It takes seconds of processor to start."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def profile(browser: Browser) -> Iterator[BrowserContext]:
    """One that has seen nothing yet.  It fails the test if a page has an error, breaks its policy,
    or asks another host."""
    wrong: list[str] = []

    def watch(page: Page) -> None:
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "console",
            lambda line: wrong.append(line.text) if "Policy" in line.text else None,
        )
        page.on(
            "request",
            lambda asked: None if "//127.0.0.1:" in asked.url else wrong.append(asked.url),
        )

    with browser.new_context(viewport=SCREEN, color_scheme="light") as made:
        made.set_default_timeout(PATIENCE_MS)
        made.on("page", watch)
        yield made
    assert not wrong, wrong


def expect(locator: Locator) -> LocatorAssertions:
    """What it is, at the latest when our patience ends."""
    from playwright.sync_api import expect as expected

    expected.set_options(timeout=PATIENCE_MS)
    return expected(locator)


def seen(page: Page, name: str) -> None:
    if folder := os.environ.get("SHMBROKER_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png")
