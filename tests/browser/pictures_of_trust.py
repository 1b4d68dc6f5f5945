"""More of what ``tests.browser.screenshots`` takes: imports, long summaries, limits, the admin."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.async_api import expect

from tests.browser.pictures import picture, pictures_at
from tests.browser.screen import Screen, imported
from tests.browser.scripts import summary, summing_up
from tests.browser.test_compression import DETAILS, RULE
from tests.servers import RunningServer, manage
from tests.upstreams import RunningUpstream

#: "obey" in tag characters, which no font shows and a model reads.
TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
#: A name that looks like the owner's: it ends in a Hangul filler.
LOOKALIKE = "owner\u115f"
LONG = "An answer with a count of its own. " * 40


async def of_imports(screen: Screen, folder: Path) -> None:
    """One that runs, one that was cancelled, the list of them, and one with things left out."""
    page = screen.page
    short = _chat("1", f"Call this one heron{TAGS}")
    words = [f"word {number}" for number in range(60_000)]
    file = folder / "conversations.json"
    file.write_text(json.dumps([short, *(_chat(f"long {number}", *words) for number in range(6))]))
    await _import(screen, file)
    await expect(page.get_by_text("1 of 7 conversations")).to_be_visible()
    await picture(screen, "import-running")
    await page.goto("/import/")
    await picture(screen, "imports-one-running")
    await _import(screen, file)
    await picture(screen, "import-one-at-a-time")
    await page.get_by_role("link", name="See how far it is").click()
    await page.get_by_role("button", name="Cancel import").click()
    await expect(page.get_by_role("status")).to_contain_text("The import was cancelled.")
    await picture(screen, "import-cancelled")
    file.write_text(json.dumps([short, {"uuid": "3"}, _chat("4", "More")]))
    await _import(screen, file)
    await expect(page.get_by_text("could not be read")).to_be_visible()
    await picture(screen, "import-report")
    await page.goto("/import/")
    await picture(screen, "imports")


def _chat(uuid: str, *texts: str) -> dict[str, object]:
    """A conversation as Claude exports it."""
    messages = [{"sender": "human", "text": text, "content": []} for text in texts]
    return {"uuid": uuid, "name": f"Conversation {uuid}", "chat_messages": messages}


async def _import(screen: Screen, file: Path) -> None:
    await screen.page.goto("/settings/")
    await screen.page.get_by_label("A file of conversations").set_input_files(file)
    await screen.page.get_by_role("button", name="Import").click()
    await screen.page.wait_for_url(re.compile("/import/"))


async def of_a_long_summary(screen: Screen, model: RunningUpstream, product: RunningServer) -> None:
    """Its parts, with the input locked, and what is said when it was cancelled."""
    texts = [f"Case {n} costs {n * 17} pounds. {DETAILS}" for n in range(1, 81)]
    await screen.page.goto(imported(product, *texts))
    model.reset()
    model.script(
        summing_up(seconds=1),
        summing_up(seconds=1),
        summary(RULE, seconds=120),
    )
    await screen.button("Compact").click()
    part = screen.page.locator("#compression-part")
    await expect(part).to_contain_text(re.compile(r"part 3 of \d+\s*messages.*left", re.DOTALL))
    await picture(screen, "compressing-part")
    await screen.button("Cancel").click()
    await expect(screen.page.locator("#alerts .done")).to_contain_text("cancelled")
    await picture(screen, "compression-cancelled")


async def of_hidden_characters(screen: Screen, model: RunningUpstream) -> None:
    """Where a reader and a reviewer meet them."""
    page = screen.page
    model.reset()
    await page.goto("/?new")
    model.script({"text": f"Of course.{TAGS} What is `it{TAGS}` about?"})
    await screen.ask(f"A question{TAGS} with more in it than one sees")
    await screen.button("What the model sees").click()
    await page.locator("#drawer-body summary", has_text="message 1").click()
    await picture(screen, "hidden-characters")
    await page.keyboard.press("Escape")
    await page.goto("/admin/chatapp/conversation/")
    await page.locator("#result_list tbody th a").first.click()
    await page.locator("a[href*='conversation__id__exact']").first.click()
    await picture(screen, "admin-hidden-characters")


async def of_a_learned_window(screen: Screen, model: RunningUpstream) -> None:
    """What a refusal taught, where it is seen and reset."""
    page = screen.page
    model.reset()
    await page.goto("/?new")
    # More than any request took until now: what was answered is no window's end.
    words = "This model's maximum context length is 3900 tokens. However, you requested 5000 tokens"
    model.script({"status": 400, "message": words, "code": "context_length_exceeded"})
    await screen.ask("Hello.")
    await page.goto("/admin/chatapp/modelprofile/")
    await expect(page.locator("#result_list")).to_contain_text("window: 3,900")
    await picture(screen, "admin-profiles-learned")
    await page.locator("#result_list tbody th a").first.click()
    await picture(screen, "admin-profile-learned")
    await page.get_by_role("button", name="Reset what was learned").click()
    await picture(screen, "admin-profile-reset")


async def of_people(screen: Screen, product: RunningServer, folder: Path) -> None:
    """Accounts, among them one that looks like another; and the record of who looked and did."""
    page = screen.page
    await page.goto("/admin/auth/user/add/")
    await picture(screen, "admin-person-add")
    await page.get_by_label("Username").fill(LOOKALIKE)
    await page.get_by_label("Disabled").check()
    await page.get_by_role("button", name="Save", exact=True).click()
    await picture(screen, "admin-person")
    address = page.url
    file = folder / "theirs.json"
    file.write_text(json.dumps([{"role": "user", "content": "Nobody else should read this."}]))
    printed = manage(product, "import_messages", str(file), "--owner", LOOKALIKE)
    assert "/c/" in printed
    await pictures_at(
        screen,
        admin_people="/admin/auth/user/",
        admin_person_password=address.replace("/change/", "/password/"),
        admin_person_delete=address.replace("/change/", "/delete/"),
    )
    await page.goto("/admin/chatapp/conversation/?o=2.-10")
    await page.locator("#result_list tbody tr", has_text="U+115F").locator("th a").first.click()
    await page.get_by_role("link", name="1", exact=True).click()
    await pictures_at(screen, admin_records="/admin/chatapp/accessrecord/")
    await page.locator("#result_list tbody th a").first.click()
    await picture(screen, "admin-record")


async def of_a_daily_limit(screen: Screen, model: RunningUpstream) -> None:
    """A server with a limit that one reply uses up."""
    page = screen.page
    model.reset()
    await page.goto("/?new")
    model.script({"text": LONG})
    await screen.ask("Hello.")
    await screen.send("And one more.")
    await expect(page.get_by_role("alert").filter(has_text="limit for today")).to_be_visible()
    await picture(screen, "daily-limit")
    await page.goto("/admin/auth/user/")
    await picture(screen, "admin-people-daily-limit")
    await page.locator("#result_list tbody th a").first.click()
    await page.get_by_role("heading", name="Daily limit").scroll_into_view_if_needed()
    await picture(screen, "admin-person-daily-limit")
