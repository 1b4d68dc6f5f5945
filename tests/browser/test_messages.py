"""What can be done with one message, and what a reply saw."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import BrowserContext, expect

from tests.browser.screen import Screen
from tests.browser.scripts import MARKDOWN
from tests.browser.test_compression import fill
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser


async def test_a_wide_table_is_scrolled_and_its_words_stay_whole(
    screen: Screen, model: RunningUpstream
) -> None:
    """Breaks when: words in a cell may be broken anywhere, or the table does not scroll."""
    columns = 8
    rows = ["|" + " Measurement |" * columns, "|" + "---|" * columns, "|" + " 1,234 |" * columns]
    model.script({"text": "\n".join(rows)})
    await screen.page.set_viewport_size({"width": 390, "height": 844})
    await screen.ask("A table, please.")
    table = screen.articles.last.locator(".table")
    heads = await table.locator("th").evaluate_all("all => all.map((one) => one.offsetHeight)")
    assert len(heads) == columns
    assert max(heads) < 40, "one line each"
    assert await table.evaluate("box => box.scrollWidth > box.clientWidth")
    assert await screen.page.evaluate("document.documentElement.scrollWidth") <= 390


async def test_long_cells_get_their_room_before_the_table_scrolls(
    screen: Screen, model: RunningUpstream
) -> None:
    """Breaks when: a long cell may be as narrow as a short one."""
    words = "a cell with quite some words in it, as models write them in comparisons"
    rows = ["| Name |" + " What |" * 4, "|---|" + "---|" * 4, "| Short |" + f" {words} |" * 4]
    model.script({"text": "\n".join(rows)})
    await screen.page.set_viewport_size({"width": 390, "height": 844})
    await screen.ask("A table, please.")
    table = screen.articles.last.locator(".table")
    widths = await table.locator("td").evaluate_all("all => all.map((one) => one.offsetWidth)")
    assert widths[0] < 150
    assert min(widths[1:]) > 240
    assert await screen.page.evaluate("document.documentElement.scrollWidth") <= 390


async def test_headings_of_a_reply_differ(screen: Screen, model: RunningUpstream) -> None:
    """Breaks when: two levels share a size."""
    model.script({"text": "# One\n\n## Two\n\n### Three\n\n#### Four\n\nText."})
    await screen.ask("Headings, please.")
    sizes = await screen.articles.last.locator(".body > *").evaluate_all(
        "all => all.map((one) => parseFloat(getComputedStyle(one).fontSize))"
    )
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes[:4])) == 4


async def test_formulas_are_set_and_wide_ones_scroll(
    screen: Screen, model: RunningUpstream
) -> None:
    """Breaks when: the sanitiser lets no MathML through, or a formula may not scroll."""
    wide = " + ".join(f"x_{{{number}}}" for number in range(60))
    text = f"So \\(a^2\\) and\n\\[\n\\frac{{a}}{{b}}\n\\]\nand\n$$\n{wide}\n$$\nand \\(\\foo\\)."
    model.script({"text": text})
    await screen.page.set_viewport_size({"width": 390, "height": 844})
    await screen.ask("Formulas, please.")
    reply = screen.articles.last
    power, fraction, sum_ = await reply.locator("math").all()
    # Read at once: a state that comes after the end may put the same message in its own place.
    boxes = "letters => letters.map((letter) => letter.getBoundingClientRect())"
    base, exponent = await power.locator("mi, mn").evaluate_all(boxes)
    assert exponent["y"] < base["y"], "above, as a power"
    above, below = await fraction.locator("mi").evaluate_all(boxes)
    assert above["y"] + above["height"] <= below["y"]
    scrolls = "({parentElement: box}) => (box.scrollLeft = 40) && box.scrollLeft > 0"
    assert await sum_.evaluate(scrolls)
    assert not await fraction.evaluate(scrolls)
    assert await screen.page.evaluate("document.documentElement.scrollWidth") <= 390
    await expect(reply.locator("code")).to_have_text("\\(\\foo\\)")
    shown = await reply.locator(".body").inner_text()
    await screen.page.reload()
    assert await reply.locator(".body").inner_text() == shown


async def test_a_list_has_its_marks_where_its_script_begins(
    screen: Screen, model: RunningUpstream
) -> None:
    """Breaks when: lists have no direction of their own, or their room for marks has a side."""
    model.script({"text": "- one\n- שלום\n\nA line.\n\n- שלום\n- one\n\nAnd then:\n\n- [x] done"})
    await screen.ask("Lists, please.")
    lists = screen.articles.last.locator(".body > ul")
    shown = await lists.evaluate_all(
        """all => all.map((list) => {
            const [style, inner] = [getComputedStyle(list), list.firstElementChild];
            const text = document.createRange();
            text.selectNodeContents(inner);
            const [box, line] = [list.getBoundingClientRect(), text.getBoundingClientRect()];
            return [style.direction, line.left - box.left < 40, box.right - line.right < 40,
                    getComputedStyle(inner).listStyleType];
        })"""
    )
    assert shown == [
        ["ltr", True, False, "disc"],
        ["rtl", False, True, "disc"],
        ["ltr", True, False, "none"],
    ]
    await expect(lists.last).to_have_text("☑ done")


async def test_a_title_can_be_read_beside_the_drawer(screen: Screen) -> None:
    await screen.ask("A title that is long enough to be cut off where there is no room for it.")
    await screen.button("What the model sees").click()
    await expect(screen.page.locator("#drawer-body")).to_contain_text("kept free for the reply")
    title = await screen.page.get_by_role("heading", level=1).bounding_box()
    assert title is not None
    assert title["width"] > 200
    await expect(screen.page.get_by_role("combobox", name="Model", exact=True)).to_be_visible()


async def test_a_message_can_be_pinned_and_unpinned(screen: Screen) -> None:
    await screen.ask("Hello.")
    await screen.act(0, "Pin")
    await expect(screen.articles.first.get_by_text("Pinned")).to_be_visible()
    await screen.act(0, "Unpin")
    await expect(screen.articles.first.get_by_text("Pinned")).to_have_count(0)


async def test_a_reply_says_what_it_cost_and_what_it_saw(screen: Screen) -> None:
    await screen.ask("Hello.")
    await screen.ask("And again.")
    await expect(screen.articles.last).to_contain_text(re.compile(r"\d+ in, \d+ out"))
    await screen.act(1, "What this reply saw")
    drawer = screen.page.get_by_role("complementary", name="What the model sees")
    await expect(drawer.get_by_role("heading", name="What this reply saw")).to_be_visible()
    await expect(drawer).to_contain_text("fake-model")
    await expect(drawer.get_by_role("link")).to_have_text(["Message 2", "1"])
    await drawer.get_by_role("tab", name="Next request").click()
    await expect(drawer).to_contain_text("kept free for the reply")


async def test_what_was_replaced_can_be_read(screen: Screen, model: RunningUpstream) -> None:
    """Breaks when: the mark waits for a reload, is lost with the reply's end or with a pin, or
    leads away from the conversation."""
    page, mark = screen.page, screen.feed.get_by_role("link")
    model.script({"text": "The first *reply*."}, {"text": "The second reply."})
    await screen.ask("The first question.")
    await expect(mark).to_have_count(0)
    await screen.articles.last.hover()
    await screen.button("Regenerate").last.click()
    await expect(screen.articles.last).to_contain_text("The second reply.")
    await expect(screen.button("Stop")).to_be_hidden()
    for _ in range(2):
        await expect(mark).to_have_text(["Answered again"])
        await page.reload()
    address = page.url
    await mark.click()
    drawer = page.get_by_role("complementary", name="What the model sees")
    await expect(drawer.locator(".body")).to_have_text(["The first reply."])
    await expect(drawer.locator("em")).to_have_text("reply")
    assert page.url == address
    await page.keyboard.press("Escape")
    await expect(mark).to_be_focused()
    await screen.articles.first.hover()
    await screen.button("Edit").first.click()
    await page.get_by_role("textbox", name="Edit message").fill("The second question.")
    await page.get_by_role("textbox", name="Edit message").press("Enter")
    await expect(mark).to_have_text(["Edited"])
    await expect(screen.button("Stop")).to_be_hidden()
    await screen.act(0, "Pin")
    await expect(screen.articles.first.get_by_text("Pinned")).to_be_visible()
    await mark.click()
    await expect(drawer.locator(".body")).to_have_text(
        ["The first question.", "The first reply.", "The second reply."]
    )


async def test_messages_and_their_code_can_be_copied(
    screen: Screen, model: RunningUpstream
) -> None:
    """Breaks when: Copy takes a reply's text from the page, or the captions of code with it."""
    page, pasted = screen.page, "navigator.clipboard.readText()"
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    model.script({"text": MARKDOWN})
    await screen.ask("Show me some code.")
    reply = screen.articles.last
    await reply.locator("figcaption").get_by_role("button", name="Copy").click()
    await expect(reply.get_by_role("button", name="Copied")).to_be_visible()
    assert (await page.evaluate(pasted)).strip() == 'print("hello")'
    await reply.locator("footer").get_by_role("button", name="Copy").click()
    await expect(reply.locator("footer").get_by_role("button", name="Copied")).to_be_visible()
    assert await page.evaluate(pasted) == MARKDOWN
    await page.route("**/messages/*/", lambda route: route.abort())
    await expect(reply.locator("footer").get_by_role("button", name="Copy")).to_be_visible()
    await page.evaluate("navigator.clipboard.writeText('')")
    await reply.locator("footer").get_by_role("button", name="Copy").click()
    await expect(reply.locator("footer").get_by_role("button", name="Copied")).to_be_visible()
    shown = await page.evaluate(pasted)
    assert "python" not in shown
    assert "Copy" not in shown
    assert shown.startswith("A list:")
    assert shown.endswith("And a last line.")


async def test_without_a_clipboard_for_scripts_copying_works_too(
    screen: Screen, model: RunningUpstream
) -> None:
    """A page without TLS has none.

    Breaks when: ``copyBySelection`` is given the promise and not the text.
    """
    page = screen.page
    model.script({"text": "# *Copied*"})
    await page.add_init_script("delete Navigator.prototype.clipboard")
    await page.goto("/?new")
    await screen.ask("Copy me.")
    await screen.articles.first.get_by_role("button", name="Copy").click()
    await expect(screen.articles.first.get_by_role("button", name="Copied")).to_be_visible()
    await screen.box.press("Control+v")
    await expect(screen.box).to_have_value("Copy me.")
    await screen.box.fill("")
    await screen.articles.last.get_by_role("button", name="Copy").click()
    await expect(screen.articles.last.get_by_role("button", name="Copied")).to_be_visible()
    await screen.box.press("Control+v")
    await expect(screen.box).to_have_value("# *Copied*")


async def test_reasoning_is_folded_away(screen: Screen, model: RunningUpstream) -> None:
    model.script({"text": "42.", "reasoning": "Six times seven."})
    await screen.ask("What is it?")
    reply = screen.articles.last
    await expect(reply.get_by_text("Six times seven.")).to_be_hidden()
    await reply.get_by_text("Thought for a moment").click()
    await expect(reply.get_by_text("Six times seven.")).to_be_visible()


async def test_a_branch_ends_at_its_message(screen: Screen) -> None:
    await screen.ask("Hello.")
    await screen.ask("And again.")
    before = screen.page.url
    await screen.act(1, "Branch from here")
    await expect(screen.page).not_to_have_url(before)
    await expect(screen.articles).to_have_count(2)
    await expect(screen.articles.first).to_contain_text("Hello.")
    # Both have the same title: the list marks which of them is the branch, and it leads back.
    here = screen.page.locator("#links a[aria-current]")
    await expect(here).to_contain_text("branch")
    await expect(screen.page.locator("#links a:not([aria-current])").first).not_to_contain_text(
        "branch"
    )
    await screen.button("Conversation settings").click()
    settings = screen.page.get_by_role("dialog", name="Conversation settings")
    await expect(settings).to_contain_text("Branched from Hello.")
    await settings.get_by_role("link", name="Hello.").click()
    await expect(screen.page).to_have_url(before)


async def test_a_branch_that_ends_with_a_question_can_be_answered(screen: Screen) -> None:
    await screen.ask("Hello.")
    await screen.ask("And again.")
    await expect(screen.button("Answer")).to_have_count(0)
    before = screen.page.url
    await screen.act(2, "Branch from here")
    await expect(screen.page).not_to_have_url(before)
    await expect(screen.articles).to_have_count(3)
    await screen.button("Answer").click()
    await expect(screen.articles.last).to_contain_text("You said: And again.")
    await expect(screen.button("Answer")).to_have_count(0)


async def test_compressing_up_to_a_message_ends_there(screen: Screen) -> None:
    await fill(screen, 4)
    await screen.act(3, "Compress up to here")
    divider = screen.page.get_by_role("region", name="Compressed messages")
    await expect(divider).to_have_attribute("data-boundary", "4")
    # Above the divider a message cannot be edited; one can go on from it elsewhere.
    first = screen.articles.first
    await first.hover()
    await expect(first.get_by_role("button", name="Edit", exact=True)).to_be_hidden()
    await first.get_by_role("button", name="Branch from here").click()
    await expect(screen.articles).to_have_count(1)


async def test_the_settings_of_a_conversation_are_kept(screen: Screen) -> None:
    page = screen.page
    await screen.ask("Hello.")
    await screen.button("Conversation settings").click()
    await page.get_by_text("The figures", exact=True).click()
    full = page.get_by_label("Compress when the room for a request is this full")
    await expect(full).to_have_value("80")
    await full.fill("60")
    await page.get_by_label("Turns kept word for word").fill("5")
    await page.set_viewport_size({"width": 390, "height": 844})
    sideways = "dialog => dialog.scrollWidth - dialog.clientWidth"
    assert await page.locator("#settings").evaluate(sideways) == 0
    await screen.button("Save").click()
    await expect(page.get_by_role("dialog", name="Conversation settings")).to_be_hidden()
    await expect(page.get_by_role("meter", name="Context used")).to_have_attribute(
        "aria-valuetext", re.compile("45 %")
    )
    await page.reload()
    await screen.button("Conversation settings").click()
    await expect(page.get_by_role("radio", name="Your own figures")).to_be_checked()
    await expect(page.get_by_label("Turns kept word for word")).to_have_value("5")


async def test_the_settings_show_what_holds_and_send_what_was_changed(
    screen: Screen, signed_in: BrowserContext
) -> None:
    """Breaks when: the dialog shows what held when the page was loaded, or sends that again."""
    page = screen.page
    await screen.ask("Hello.")
    await screen.send("/system Answer in verse.")
    settings = page.get_by_role("dialog", name="Conversation settings")
    instructions = page.get_by_label("Instructions for the model")
    await screen.button("Conversation settings").click()
    await expect(instructions).to_have_value("Answer in verse.")
    other = Screen(await signed_in.new_page())
    await other.page.goto(page.url)
    await other.send("/system Answer in prose.")
    await expect(other.page.locator("#alerts")).to_contain_text("Instructions saved")
    await page.locator("#settings-title").fill("Verse")
    await page.get_by_text("The figures", exact=True).click()
    await page.get_by_label("Turns kept word for word").fill("5")
    await screen.button("Save").click()
    await expect(settings).to_be_hidden()
    stored = (await screen.stored())["conversation"]
    assert (stored["title"], stored["keep_turns"]) == ("Verse", 5)
    assert stored["system_prompt"] == "Answer in prose."
    # What is refused is said where it was written, and nothing of it is lost.
    await screen.button("Conversation settings").click()
    await expect(instructions).to_have_value("Answer in prose.")
    await instructions.evaluate("box => box.removeAttribute('maxlength')")
    await instructions.fill("Answer in rhyme. " * 2000)
    await screen.button("Save").click()
    await expect(settings.get_by_role("alert")).to_be_visible()
    await expect(instructions).to_have_value(re.compile("Answer in rhyme"))


async def test_settings_that_were_not_saved_are_still_there(screen: Screen) -> None:
    """Breaks when: the dialog is read anew over what was written, or what is saved counts as
    unsaved: what the dialog showed first, what it has saved, what another command has changed."""
    page = screen.page
    await screen.ask("Hello.")
    settings = page.get_by_role("dialog", name="Conversation settings")
    instructions = page.get_by_label("Instructions for the model")
    unsaved = settings.get_by_text("Your changes are not saved yet.")

    async def shown(words: str, *, saved: bool) -> None:
        await screen.button("Conversation settings").click()
        await expect(settings).to_be_visible()
        await expect(instructions).to_have_value(words)
        await expect(unsaved).to_have_count(0 if saved else 1)

    await shown("", saved=True)
    await instructions.fill("Answer in verse.")
    await page.keyboard.press("Escape")
    await expect(settings).to_be_hidden()
    await shown("Answer in verse.", saved=False)
    await screen.button("Save").click()
    await expect(settings).to_be_hidden()
    await screen.send("/system Answer in prose.")
    await expect(page.locator("#alerts")).to_contain_text("Instructions saved")
    await shown("Answer in prose.", saved=True)
    await instructions.fill("Answer in rhyme.")
    await settings.get_by_role("button", name="Cancel").click()
    await expect(settings).to_be_hidden()
    await shown("Answer in prose.", saved=True)
    await page.keyboard.press("Escape")
    assert await screen.leaves() is None
    await shown("Answer in prose.", saved=True)
    await instructions.press_sequentially("!")
    await page.keyboard.press("Escape")
    assert await screen.leaves() == "beforeunload"
    assert not screen.complaints


async def test_one_can_go_on_in_a_new_conversation(screen: Screen) -> None:
    await screen.ask("Hello.")
    before = screen.page.url
    await screen.button("Conversation settings").click()
    await screen.button("Continue in a new conversation").click()
    await expect(screen.page).not_to_have_url(before)
    await expect(screen.articles.first).to_contain_text("Hello.")
