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
    from playwright.sync_api import BrowserContext, Locator, LocatorAssertions, Page

PATIENCE_MS = 60_000
PHONE = {"width": 390, "height": 844}
SCREEN = {"width": 1280, "height": 900}
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@contextmanager
def chromium(profile: Path) -> Iterator[BrowserContext]:
    """It fails the test if a page has an error, breaks its policy, or asks another host."""
    from playwright.sync_api import sync_playwright

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

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch_persistent_context(
            profile, executable_path="/usr/bin/chromium", headless=True,
            args=ARGUMENTS, viewport=SCREEN, color_scheme="light",
        )  # fmt: skip
        browser.set_default_timeout(PATIENCE_MS)
        browser.on("page", watch)
        yield browser
        browser.close()
    assert not wrong, wrong


def expect(locator: Locator) -> LocatorAssertions:
    """What it is, at the latest when our patience ends."""
    from playwright.sync_api import expect as expected

    expected.set_options(timeout=PATIENCE_MS)
    return expected(locator)


def seen(page: Page, name: str) -> None:
    if folder := os.environ.get("SHMBROKER_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png")
