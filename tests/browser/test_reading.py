"""How a reader finds what was written: while it comes, when it is long or wide, and on paper."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect

from tests.browser.screen import Screen, imported, imported_messages
from tests.browser.scripts import FOR_EVER, unending
from tests.servers import RunningServer
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser

CODE = "".join(f"def step_{n}(value: int) -> int:\n    return value + {n}\n\n" for n in range(40))
TIME = re.compile("^Thought for ")
WIDE = "result = " + " + ".join(f"value_{n}" for n in range(60))


async def test_half_of_a_sign_is_never_seen(screen: Screen, model: RunningUpstream) -> None:
    """Breaks when: an update shows the open block as it was written so far."""
    await screen.ask("Hello.")
    halves = [
        "So **bo",
        "ld** and [a li",
        "nk](https://x.exam",
        "ple) and $a_",
        "1$.\n\n| On",
        "e |",
    ]
    steps = [step for half in halves for step in ({"text": half}, {"delay": 0.15})]
    end = [{"text": "\n|---|\n| 1 |"}, {"finish": "stop"}, {"done": True}]
    model.script({"steps": [*steps, *end]})
    await screen.page.evaluate(
        """() => {
            window.seen = [];
            new MutationObserver(() => {
                const bodies = document.querySelectorAll(".assistant .body");
                for (const body of bodies) window.seen.push(body.innerText.trim());
            }).observe(document.querySelector("#feed"), {childList: true, subtree: true});
        }"""
    )
    await screen.send("Slowly, please.")
    reply = screen.articles.last
    await expect(reply.locator("td")).to_have_text("1")
    await expect(reply.locator("msub")).to_have_count(1)
    seen: list[str] = await screen.page.evaluate("window.seen")
    assert {"So bo", "So bold and a li"} <= set(seen)
    assert [one for one in seen if any(sign in one for sign in "*[]($|")] == []


async def test_code_is_coloured_while_it_is_written_and_is_one_block(
    screen: Screen, model: RunningUpstream
) -> None:
    """Breaks when: the open fence is shown plain, its parts are not joined, or what is copied while
    it is written lacks its open end.
    """
    model.script(
        {
            "steps": [
                {"text": f"```python\n{CODE}def la"},
                {"wait": None},
                {"text": "st(): ...\n```\n"},
            ]
        }
    )
    await screen.send("Code, please.")
    reply = screen.articles.last
    await expect(reply.locator(".open .hl-k").last).to_have_text("def")
    await expect(reply.locator(".closed figure")).to_have_count(1)
    await expect(reply.locator(".closed code")).to_contain_text("step_25")
    await expect(reply.locator(".closed .hl-nf").first).to_have_text("step_0")
    await screen.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await reply.get_by_role("button", name="Copy").click()
    await expect(reply.get_by_role("button", name="Copied")).to_be_visible()
    copied: str = await screen.page.evaluate("navigator.clipboard.readText()")
    assert copied.endswith("\n\ndef la")
    assert "step_0" in copied
    model.release()
    await expect(reply.locator("figure")).to_have_count(1)
    await expect(reply.locator("code")).to_contain_text("def last(): ...")


async def test_a_block_of_code_has_its_header_from_the_start(
    screen: Screen, model: RunningUpstream
) -> None:
    """And keeps it: the button that is pressed, whether lines are wrapped, and its height.

    Breaks when: an update writes the header anew, or it grows when its block is finished.
    """
    await screen.ask("Hello.")
    begins = {"text": f"```python\n{WIDE[:600]}\n"}
    goes_on = {"text": "last = 1\n"}
    ends = [{"text": "```\n\nThat is"}, {"delay": 1}, {"text": " all."}, {"finish": "stop"}]
    model.script({"steps": [begins, {"wait": None}, goes_on, {"delay": 1}, *ends, {"done": None}]})
    await screen.send("Code, please.")
    reply = screen.articles.last
    header = reply.locator("figcaption")
    height = "one => one.getBoundingClientRect().height"
    before = await header.evaluate(height)
    await header.get_by_role("button", name="Wrap").press("Enter")
    model.release()
    await expect(reply.locator(".open code")).to_contain_text("last = 1")
    await expect(header.get_by_role("button", name="Wrap")).to_be_focused()
    await expect(reply.locator(".closed .wrapped")).to_be_visible()
    assert await header.evaluate(height) == before
    await expect(screen.button("Stop")).to_be_hidden()
    await expect(reply.locator(".closed")).to_have_count(0)
    await expect(header.get_by_role("button", name="Wrap")).to_have_attribute(
        "aria-pressed", "true"
    )
    assert await header.evaluate(height) == before
    assert screen.complaints == []


async def test_the_caret_stands_at_the_end_of_what_is_written(
    screen: Screen, model: RunningUpstream
) -> None:
    """In whatever element the last words are, and only there, until the reply ends.

    Breaks when: an item around the last one or a paragraph before it has one too, or it takes room
    in its line.
    """
    carets = """(expected) => {
        const has = (one) => getComputedStyle(one, "::after").content.includes("\u200b");
        const found = [...document.querySelectorAll(".assistant .body *")].filter(has);
        return expected === found.map((one) =>
            `${one.localName} ${getComputedStyle(one, "::after").position}`).join();
    }"""
    reply = screen.articles.last
    for text, where in (
        ("So it", "p"),
        ("So.\n\n- one\n- two\n  - three", "li"),
        ("So.\n\n- one\n\n- two", "p"),
        ("> quoted\n>\n> and", "p"),
        ("```\nx = 1", "code"),
        ("So.\n\n| a |\n|---|\n| b |", "td"),
        ("So.\n\n# Head\n", "div"),
    ):
        model.script(unending(text))
        await screen.send("Go on.")
        await expect(reply).to_have_attribute("aria-busy", "true")
        await screen.page.wait_for_function(carets, arg=f"{where} absolute")
        await screen.button("Stop").click()
        await expect(reply).to_contain_text("Stopped")
        await screen.page.wait_for_function(carets, arg="")


async def test_a_wide_block_is_wrapped_and_seen_in_full_by_keyboard(
    screen: Screen, product: RunningServer
) -> None:
    """Breaks when: the header scrolls away, or the full view does not give the focus back."""
    page = screen.page
    table = "|" + " A long heading |" * 14 + "\n|" + "---|" * 14 + "\n|" + " 1,234 |" * 14
    narrow = "```\nshort\n```"
    await page.goto(
        imported(product, "Hi.", f"```python\n{WIDE}\n{CODE}{CODE}```\n\n{table}\n\n{narrow}")
    )
    wide, short = await screen.articles.last.locator("figure").all()
    await expect(short.get_by_role("button", name="Wrap")).to_be_hidden()
    await expect(short.get_by_role("button", name="Full view")).to_be_hidden()
    # The header of a block that fills the screen stays at its top.
    middle = wide.locator("code > span", has_text="step_20").first
    await middle.evaluate("one => one.scrollIntoView({block: 'center'})")
    await expect(wide.get_by_role("button", name="Copy")).to_be_in_viewport()
    await wide.get_by_role("button", name="Wrap").press("Enter")
    await expect(wide.get_by_role("button", name="Wrap")).to_have_attribute("aria-pressed", "true")
    assert await wide.locator("pre").evaluate("pre => pre.scrollWidth <= pre.clientWidth")
    for opener, name in (
        (wide.get_by_role("button", name="Full view"), "python in full"),
        (screen.articles.last.locator(".table + button"), "Table in full"),
    ):
        await opener.press("Enter")
        shown = page.get_by_role("dialog", name=name)
        await expect(shown.locator("table, pre").first).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(shown).to_have_count(0)
        await expect(opener).to_be_focused()


async def test_a_persons_own_words_are_markdown_and_fold(
    screen: Screen, model: RunningUpstream
) -> None:
    """Breaks when: the editor begins with the words as shown, or an update folds what was open."""
    model.script({"text": "I see."})
    text = "Look at **this**:\n\n```python\nx = 1\n```\n" + "\nand   more" * 30
    await screen.ask(text)
    mine = screen.articles.first
    body = mine.locator(".body")
    await expect(body.locator("strong")).to_have_text("this")
    await expect(body.locator(".hl-mi")).to_have_text("1")
    folded = await body.evaluate("one => one.scrollHeight > one.clientHeight + 100")
    assert folded
    await mine.get_by_role("button", name="Show all").press("Enter")
    less = mine.get_by_role("button", name="Show less")
    await expect(less).to_be_focused()
    assert await body.evaluate("one => one.scrollHeight <= one.clientHeight + 1")
    await screen.act(0, "Pin")
    await expect(mine.get_by_text("Pinned")).to_be_visible()
    await expect(less).to_be_visible()
    await mine.hover()
    await mine.get_by_role("button", name="Edit").click()
    await expect(mine.get_by_role("textbox", name="Edit message")).to_have_value(text)


async def test_the_last_line_of_the_thoughts_is_seen_and_then_their_time(
    screen: Screen, model: RunningUpstream
) -> None:
    """Breaks when: a delta brings the thoughts without their last line, or no time is stored."""
    steps = [{"reasoning": "First this.\nThen that."}, {"wait": None}, {"text": "Done."}]
    model.script({"steps": [*steps, {"delay": FOR_EVER}]})
    await screen.send("Think.")
    head = screen.articles.last.locator("summary")
    await expect(head).to_have_text("Then that.")
    await expect(head).to_be_visible()
    model.release()
    await expect(head).to_have_text(TIME)
    await screen.page.reload()
    await expect(screen.articles.last).to_have_attribute("aria-busy", "true")
    await expect(head).to_have_text(TIME)
    await screen.button("Stop").click()
    await expect(screen.articles.last).not_to_have_attribute("aria-busy", "true")
    await expect(head).to_have_text(TIME)


async def test_paper_has_all_of_it(screen: Screen, product: RunningServer) -> None:
    """Breaks when: what is folded or wide on the screen is cut off on paper too."""
    page = screen.page
    mine = "A long one.\n" + "More.\n" * 40 + "The end."
    table = (
        "|"
        + " Heading |" * 12
        + "\n|"
        + "---|" * 12
        + "\n|"
        + " a_long_word_without_a_break |" * 12
    )
    theirs = f"```\n{WIDE}\n```\n\n{table}\n\n$\\frac{{a}}{{b}}$"
    reply = {"role": "assistant", "content": theirs, "reasoning_content": "A thought."}
    await page.goto(imported_messages(product, [{"role": "user", "content": mine}, reply]))
    await expect(screen.articles).to_have_count(2)
    await page.set_viewport_size({"width": 700, "height": 900})
    await page.emulate_media(media="print", color_scheme="dark")
    body = screen.articles.first.locator(".body")
    assert await body.evaluate("one => one.scrollHeight <= one.clientHeight + 1")
    await expect(screen.articles.last.get_by_text("A thought.")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= 700
    for wide in ("pre", ".table", "math"):
        inside = "one => one.scrollWidth <= innerWidth"
        assert await screen.articles.last.locator(wide).first.evaluate(inside), wide


async def test_the_faces_of_the_page(screen: Screen, product: RunningServer) -> None:
    """Code in a text from right to left keeps its order; the book face and the brackets are there.

    Breaks when: a font is not found or refused by the policy; or code is not isolated.
    """
    page = screen.page
    formula = r"$$\left( \frac{\frac{a}{b}}{\frac{c}{d}} \right)$$"
    await page.goto(imported(product, "Hi.", f"مرحبا `f(x)[0]` نعم\n\n{formula}\n\n*a* **b**"))
    reply = screen.articles.last
    code = reply.locator("code").first
    order = await code.evaluate(
        """one => [...one.textContent].map((_, n) => {
            const range = document.createRange();
            range.setStart(one.firstChild, n); range.setEnd(one.firstChild, n + 1);
            return range.getBoundingClientRect().x;
        })"""
    )
    assert order == sorted(order)
    bracket, fraction = (
        await reply.locator("mo").first.bounding_box(),
        await reply.locator("mfrac").first.bounding_box(),
    )
    assert bracket
    assert fraction
    assert bracket["height"] > 0.8 * fraction["height"], "it stretches"
    loaded = (
        "document.fonts.ready.then(all => [...all].filter(one => one.status === 'loaded').length)"
    )
    assert await page.evaluate(loaded) >= 3
