"""What can be chosen before a conversation begins, and what becomes of a first message."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Locator, Route, expect

from tests.browser.screen import Screen, sign_in
from tests.servers import RunningServer, start_server
from tests.upstreams import running_upstream

pytestmark = pytest.mark.browser

TOO_LONG = "far too long " * 2000


def picker_of(screen: Screen) -> Locator:
    """Where the model is chosen."""
    return screen.page.get_by_role("combobox", name="Model", exact=True)


def instructions_of(screen: Screen) -> Locator:
    """Where the conversation's own instructions are written."""
    return screen.page.get_by_role("textbox", name="Instructions for the model")


@pytest_asyncio.fixture(loop_scope="session")
async def choice(browser: Browser, tmp_path: Path) -> AsyncIterator[Screen]:
    """The empty page where there are two models."""
    with running_upstream(large=16384, small=4096) as model:
        server = start_server(tmp_path, OPENAI_BASE_URL=model.base_url, CHAT_MODEL="large")
        context = await browser.new_context(
            base_url=server.base_url, storage_state=await sign_in(server, browser)
        )
        screen = Screen(await context.new_page())
        await screen.page.goto("/?new")
        yield screen
        await context.close()
        server.kill()


async def test_a_conversation_begins_with_the_model_and_instructions_of_its_writer(
    choice: Screen,
) -> None:
    """Breaks when: what is chosen on the empty page is not sent with the first message."""
    picker = picker_of(choice)
    await expect(picker.locator("option:checked")).to_have_text("large")
    await choice.send("/model small")
    await expect(picker.locator("option:checked")).to_have_text("small")
    await choice.send("/system Answer in verse.")
    await expect(instructions_of(choice)).to_have_value("Answer in verse.")
    await choice.send("Hello.")
    await expect(choice.articles.last).to_contain_text("You said: Hello.")
    stored = (await choice.stored())["conversation"]
    assert (stored["model"], stored["system_prompt"]) == ("small", "Answer in verse.")
    # Who chooses nothing has the default, also when that becomes another.
    await choice.page.goto("/?new")
    await choice.send("Hello.")
    await expect(choice.articles.last).to_contain_text("You said: Hello.")
    assert (await choice.stored())["conversation"]["model"] == ""


async def test_a_first_message_that_is_too_large_is_refused_in_its_place(choice: Screen) -> None:
    """The text and what was chosen stay, after a reload too, and nothing is left in the list.

    Breaks when: the form is sent by the browser, whose page of errors takes this one's place; or
    ``begin`` in ``drafts.js`` does not keep the fields.
    """
    picker, instructions = picker_of(choice), instructions_of(choice)
    await choice.send("/model small")
    await choice.send("/system Answer in verse.")
    await choice.send(TOO_LONG)
    card = choice.page.get_by_role("alert").filter(has_text="Shorten it by about")
    await expect(card.get_by_role("button", name="Change model")).to_be_visible()
    await expect(choice.button("Continue in a new conversation")).to_have_count(0)
    await expect(choice.box).to_be_focused()
    for _ in range(2):
        await expect(choice.box).to_have_value(TOO_LONG)
        await expect(choice.box).to_be_editable()
        await expect(choice.button("Send")).to_be_enabled()
        await expect(picker.locator("option:checked")).to_have_text("small")
        await expect(instructions).to_have_value("Answer in verse.")
        await expect(instructions).to_be_visible()
        await choice.page.reload()
    assert await choice.listed() == []
    await choice.ask("Short.")
    stored = (await choice.stored())["conversation"]
    assert (stored["model"], stored["system_prompt"]) == ("small", "Answer in verse.")
    await choice.page.goto("/?new")
    await expect(choice.box).to_have_value("")
    await expect(picker.locator("option:checked")).to_have_text("large")
    await expect(choice.page.locator("#begin-prompt")).to_have_value("")


async def test_what_was_refused_and_is_given_up_takes_its_choices_along(choice: Screen) -> None:
    """Breaks when: ``keep`` in ``drafts.js`` leaves what was chosen for a text that is gone."""
    await choice.send("/model small")
    await choice.send(TOO_LONG)
    await expect(choice.page.get_by_role("alert")).to_be_visible()
    await choice.box.fill("")
    await choice.box.fill("Something else.")
    await choice.page.reload()
    await expect(choice.box).to_have_value("Something else.")
    await expect(picker_of(choice).locator("option:checked")).to_have_text("large")


async def test_the_answer_to_a_first_message_is_lost(screen: Screen) -> None:
    """It can be sent again, after a reload too, and is there once; another text is another message.

    Breaks when: ``begin`` in ``composer.js`` sends the same text with another identifier, or
    another text with the same one.
    """
    page, before = screen.page, await screen.listed()

    async def lose(route: Route) -> None:
        await route.fetch()
        await route.abort()

    await page.route("**/c/", lose)
    await screen.send("Are you there?")
    lost = page.get_by_role("alert").filter(has_text="No connection. Your text is kept")
    await expect(lost).to_be_visible()
    await expect(screen.box).to_have_value("Are you there?")
    await page.reload()
    await page.unroute("**/c/")
    await expect(screen.box).to_have_value("Are you there?")
    await screen.box.press("Enter")
    await expect(screen.articles.last).to_contain_text("You said: Are you there?")
    assert len(await screen.listed()) == len(before) + 1
    await page.goto("/?new")
    await page.route("**/c/", lose)
    await screen.send("One.")
    await expect(lost).to_be_visible()
    await page.unroute("**/c/")
    await screen.ask("Two.")
    await expect(screen.articles.first).to_contain_text("Two.")


async def test_a_first_message_is_sent_once(screen: Screen) -> None:
    """Breaks when: a second press of Enter sends it again, while the first is on its way."""
    held: asyncio.Queue[Route] = asyncio.Queue()
    await screen.page.route("**/c/", held.put)
    await screen.send("Hello.")
    await expect(screen.box).not_to_be_editable()
    await expect(screen.button("Send")).to_be_disabled()
    await screen.box.press("Enter")
    first = await held.get()
    await first.continue_()
    await expect(screen.articles.last).to_contain_text("You said: Hello.")
    assert held.empty()


async def test_who_is_signed_out_comes_back_to_the_first_message(
    screen: Screen, signed_in: BrowserContext
) -> None:
    """Breaks when: the link to sign in forgets that a new conversation was to begin."""
    await signed_in.clear_cookies(name="sessionid")
    await screen.send("Do not lose this.")
    banner = screen.page.get_by_role("alert").filter(has_text="signed out")
    link = banner.get_by_role("link", name="Sign in")
    await expect(link).to_have_attribute("href", "/accounts/login/?next=%2F%3Fnew")
    await expect(screen.box).to_have_value("Do not lose this.")
    await screen.page.reload()
    await expect(screen.page).to_have_url(re.compile("/accounts/login/"))


async def test_without_javascript_the_page_says_it_and_keeps_the_text(
    product: RunningServer, browser: Browser
) -> None:
    """Breaks when: a refused form is answered by a page of errors; or what takes a script is shown
    in the card.
    """
    context = await browser.new_context(
        base_url=product.base_url,
        java_script_enabled=False,
        storage_state=await sign_in(product, browser),
    )
    screen = Screen(await context.new_page())
    await screen.page.goto("/?new")
    before = await screen.listed()
    await screen.page.get_by_text("Instructions for the model").first.click()
    await instructions_of(screen).fill("Answer in verse.")
    await screen.box.fill(TOO_LONG)
    await screen.button("Send").click()
    card = screen.page.get_by_role("alert").filter(has_text="Shorten it by about")
    await expect(card).to_be_visible()
    await expect(card.get_by_role("button")).to_have_count(0)
    await expect(screen.box).to_have_value(TOO_LONG)
    await expect(instructions_of(screen)).to_have_value("Answer in verse.")
    assert await screen.listed() == before
    await screen.box.fill("")
    await screen.button("Send").click()
    await expect(screen.page.get_by_role("alert")).to_contain_text("The message is empty.")
    await expect(instructions_of(screen)).to_have_value("Answer in verse.")
    await screen.box.fill("Short.")
    await screen.button("Send").click()
    await expect(screen.articles.first).to_contain_text("Short.")
    await context.close()
