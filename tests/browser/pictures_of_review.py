"""More of what ``tests.browser.screenshots`` takes: the review of summaries, and their figures."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.pictures import picture, pictures_at
from tests.browser.screen import Screen


async def of_the_review(screen: Screen) -> None:
    """The queue, one summary beside its messages, what is unfolded below, the keys, the figures."""
    page = screen.page
    await page.goto("/admin/chatapp/summary/?queue=waiting")
    await picture(screen, "review-queue")
    await page.get_by_role("link", name="Start the review").click()
    # The script listens from then on.
    await expect(screen.button("Keys")).to_be_visible()
    await page.keyboard.press("j")
    await expect(page.locator("[data-line].lit")).to_have_count(1)
    await picture(screen, "review")
    await page.keyboard.press("e")
    await picture(screen, "review-line")
    await page.keyboard.press("Escape")
    await page.keyboard.press("w")
    await picture(screen, "review-needs-work")
    await page.keyboard.press("Escape")
    folded = page.locator(".reviewing details.more:not([open]) > summary")
    while await folded.count():
        await folded.first.click()
    await page.get_by_role("link", name="All facts").scroll_into_view_if_needed()
    await picture(screen, "review-more")
    await page.reload()
    await expect(screen.button("Keys")).to_be_visible()
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    await picture(screen, "review-keys")
    await pictures_at(
        screen,
        review_figures_kept="/admin/chatapp/summary/figures/",
        review_figures_made="/admin/chatapp/summary/figures/?measure=made",
    )
