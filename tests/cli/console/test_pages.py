"""The pages in a real Chromium, which looks at a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

import shmbroker
from shmbroker.cli.console.events import STREAMS_MAX
from tests.cli.console.chromium import PHONE, SCREEN, chromium, expect, profile, seen
from tests.cli.console.conftest import ADMIN, Site
from tests.cli.console.visitor import Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

RIGHTMOST = """Math.max(...[...document.querySelectorAll("main button")].map(
  (each) => each.getBoundingClientRect().right))"""
NASTY = '"><img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with profile(browser) as empty:
        yield empty.new_page()


def test_an_operator_looks_at_a_queue_and_works_with_it(site: Site, page: Page) -> None:
    for number in range(10):
        site.shell.does("pub", "orders", f'{{"coffee": {number}}}', "--property", f"n={number}")
    site.shell.does("queue", "latency", "orders", "on")
    site.shell.does("queue", "declare", NASTY)
    site.shell.does("pub", NASTY, NASTY, "--key", NASTY, "--property", f"{NASTY}={NASTY}")
    page.goto(site.url)
    page.get_by_label("User").fill("operator")
    page.get_by_label("Password").fill(ADMIN)
    seen(page, "login")
    page.keyboard.press("Enter")
    expect(page.locator("#mode")).to_have_text("live")
    expect(page.locator("main tr", has_text="orders.dead")).to_be_visible()
    seen(page, "queues-light")

    side = page.locator("#side")
    side.locator("summary", has_text="orders").first.click()
    side.get_by_role("link", name="orders", exact=True).click()
    expect(page.locator("#messages tbody tr")).to_have_count(10)
    expect(page.locator("main h1")).to_have_text("orders")
    site.shell.does("pub", "orders", "late")  # it comes by an event
    expect(page.locator(".card", has_text="depth").locator("strong")).to_have_text("11")
    page.get_by_role("button", name="Refresh").click()
    expect(page.locator("#messages tr.new")).to_have_count(1)
    page.get_by_label("Selector").fill("n = 3")
    page.keyboard.press("Enter")
    expect(page.locator("#messages tbody tr")).to_have_count(1)
    seen(page, "queue-light")
    page.locator("#messages .link").click()
    page.get_by_role("button", name="JSON").click()
    expect(page.locator("dialog pre")).to_contain_text('"coffee": 3')
    seen(page, "message-light")
    page.get_by_role("button", name="Hex").click()
    expect(page.locator("dialog pre")).to_contain_text("7b 22 63")
    page.keyboard.press("Escape")

    page.get_by_role("button", name="Purge").click()
    page.keyboard.press("Escape")  # nothing is done without the confirmation
    assert len(site.shell.bodies("orders")) == 11
    page.get_by_role("button", name="Purge").click()
    page.locator("dialog .primary").click()
    expect(page.locator(".toast").last).to_contain_text("11 messages")
    assert site.shell.bodies("orders") == []

    page.goto(f"{site.url}#queues")
    page.locator("main tbody a", has_text="onerror").click()
    expect(page.locator("main h1")).to_have_text(NASTY)
    page.locator("#messages .link").click()
    expect(page.locator("dialog dd").first).to_have_text(NASTY)
    page.keyboard.press("Escape")
    Visitor(site.url).get(f"/static/{quote(NASTY)}")  # what is refused has a line in the log
    with shmbroker.connect(f"shm://{site.shell.vhost}", name=NASTY):
        for kind in ("participants", "log"):
            page.goto(f"{site.url}#{kind}")
            expect(page.locator("main td", has_text="onerror").first).to_be_visible()
        disconnects_and_edits_users(site, page)
    assert page.title() == "shmbroker"
    assert page.locator("img").count() == 0
    site.shell.does("queue", "delete", NASTY, "--yes", "--force")


def disconnects_and_edits_users(site: Site, page: Page) -> None:
    page.goto(f"{site.url}#participants")
    button = page.get_by_role("button", name="Disconnect")
    program = page.locator("main tr", has_text="onerror")
    expect(program.locator(button)).to_be_visible()
    expect(page.locator("main tr", has_text="broker one").locator(button)).to_have_count(0)
    seen(page, "participants-light")
    fits_a_phone(page, "participants")
    program.locator(button).click()
    page.locator("dialog .primary").click()
    expect(page.locator(".toast").last).to_contain_text("it is told, and leaves when it waits")
    expect(program).to_contain_text("closing")

    page.goto(f"{site.url}#users")
    page.get_by_role("button", name="New user").click()
    page.get_by_label("Name: letters").fill("olga")
    page.get_by_label("Logs in as").fill(NASTY)
    page.get_by_label("Password").fill("a password of olga")
    seen(page, "user-light")
    fits_a_phone(page, "user")
    page.locator("dialog .primary").click()
    olga = page.locator("main tr", has_text="olga")
    expect(olga).to_contain_text("viewer")
    expect(olga).to_contain_text(NASTY)
    seen(page, "users-light")
    fits_a_phone(page, "users")
    olga.get_by_role("button", name="Remove").click()
    page.locator("dialog .primary").click()
    expect(olga).to_have_count(0)


def fits_a_phone(page: Page, name: str) -> None:
    """In the dark; nobody scrolls sideways, not even to a button."""
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.evaluate(RIGHTMOST) <= PHONE["width"]
    seen(page, f"{name}-phone-dark")
    page.set_viewport_size(SCREEN)
    page.evaluate("document.documentElement.dataset.theme = 'light'")


def test_it_is_read_in_the_dark_on_a_phone_and_by_a_link(site: Site, page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(f"{site.url}#link={site.link('viewer')}")
    expect(page.locator("#mode")).to_have_text("live")
    assert "link" not in page.url
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    seen(page, "queues-dark")
    page.goto(f"{site.url}#queue=orders")
    expect(page.locator("main h1")).to_have_text("orders")
    expect(page.locator(".card", has_text="depth")).to_be_visible()
    assert page.locator("#actions").count() == 0  # a viewer has nothing to do there
    seen(page, "queue-dark")
    page.set_viewport_size(PHONE)
    expect(page.locator("#side")).to_be_hidden()
    page.get_by_role("button", name="Tree").click()
    expect(page.locator("#side")).to_be_visible()
    page.get_by_role("button", name="Tree").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    seen(page, "queue-phone-dark")
    page.get_by_role("button", name="Theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    for kind in ("node", "cluster", "log", "participants", "links", "doctor", "exchanges"):
        page.goto(f"{site.url}#{kind}")
        expect(page.locator("main h1")).to_contain_text(kind.capitalize())
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        seen(page, f"{kind}-phone")
    page.get_by_role("button", name="Log out").click()
    expect(page.locator("main h1")).to_have_text("Log in")


def test_what_a_page_asks_by_itself_is_no_use_of_its_session(site: Site, page: Page) -> None:
    with page.expect_request("**/api/events*") as events:
        page.goto(f"{site.url}#link={site.link('viewer')}")
    expect(page.locator("main tr", has_text="orders.dead")).to_be_visible()
    with page.expect_request("**/api/tree*") as tree:
        site.shell.does("queue", "declare", "came.later")
    assert "looks=1" in events.value.url
    assert "looks=1" in tree.value.url


def test_a_page_too_many_is_connected_when_there_is_room(site: Site, page: Page) -> None:
    visitor = site.visitor()
    with ExitStack() as opened:
        for _ in range(STREAMS_MAX):
            stream = visitor._connection()
            opened.callback(stream.close)
            stream.request("GET", "/api/events", headers={"Cookie": visitor.cookie})
            answer = opened.enter_context(stream.getresponse())
            assert answer.status == 200
        page.goto(f"{site.url}#link={site.link('viewer')}")
        expect(page.locator("#mode")).to_have_text("no connection")
    expect(page.locator("#mode")).to_have_text("live")


def test_what_cannot_be_read_is_said(own_site: Site, page: Page) -> None:
    own_site.start()
    own_site.shell.does("queue", "declare", "orders")
    page.goto(f"{own_site.url}#link={own_site.link()}")
    row = page.locator("main tr", has_text="orders")
    expect(row).to_be_visible()
    own_site.shell.does("vhost", "delete", own_site.shell.vhost, "--force", "--yes")
    expect(page.locator("#unread")).to_contain_text("there is no vhost")
    expect(row).to_be_visible()
    page.goto(f"{own_site.url}#log")
    expect(page.locator("main .notice")).to_contain_text("there is no vhost")


def test_numbers_stay_what_they_are(site: Site, page: Page) -> None:
    site.shell.does("queue", "declare", "numbers")
    page.goto(f"{site.url}#link={site.link()}")
    expect(page.locator("#mode")).to_have_text("live")
    page.goto(f"{site.url}#queue=numbers")
    page.get_by_role("button", name="Publish").click()
    page.get_by_label("Body").fill('{"b": [9007199254740993, {}], "a": 1.0, "a": "[,"}')
    page.get_by_label("Properties").fill("n=9007199254740993\nx=1.0")
    page.locator("dialog .primary").click()
    page.locator("#messages .link").click()
    page.get_by_role("button", name="JSON").click()
    expect(page.locator("dialog pre")).to_have_text(
        '{\n  "b": [\n    9007199254740993,\n    {}\n  ],\n  "a": 1.0,\n  "a": "[,"\n}'
    )
    with shmbroker.connect(f"shm://{site.shell.vhost}") as broker:
        [message] = broker.queue("numbers").browse()
        assert message.properties == {"n": 9007199254740993, "x": 1.0}
        assert isinstance(message.properties["x"], float)
