"""Light and dark: what a person chose, else what their system says."""

from __future__ import annotations

import pytest
from playwright.async_api import Page

from tests.browser.screen import Screen

pytestmark = [pytest.mark.browser]

LIGHT, DARK = "rgb(250, 246, 237)", "rgb(27, 24, 21)"
LOOK = """() => {
  const style = getComputedStyle(document.body);
  const root = getComputedStyle(document.documentElement);
  return [style.backgroundColor, root.colorScheme];
}"""


async def looks(page: Page) -> dict[str, list[str]]:
    """The paper, and the colours of what the browser draws itself, by the system's scheme."""
    found = {}
    for system in ("light", "dark"):
        await page.emulate_media(color_scheme=system)
        found[system] = await page.evaluate(LOOK)
    await page.emulate_media(color_scheme="light")
    return found


@pytest.mark.parametrize("script", [True, False], ids=["", "without scripts"])
async def test_the_theme_is_the_persons_or_the_systems(screen: Screen, script: bool) -> None:
    """Before any script of ours runs, too: the server writes what was chosen.

    Breaks when: what is dark follows the system alone, or the choice alone.
    """
    light, dark = [LIGHT, "light"], [DARK, "dark"]
    expected = {
        "light": {"light": light, "dark": light},
        "dark": {"light": dark, "dark": dark},
        "system": {"light": light, "dark": dark},
    }
    browser = screen.page.context.browser
    assert browser is not None
    context = await browser.new_context(
        base_url=screen.page.url,
        storage_state=await screen.page.context.storage_state(),
        java_script_enabled=script,
    )
    page = await context.new_page()
    await screen.page.goto("/settings/")
    found = {}
    for theme in expected:
        async with screen.page.expect_response("**/settings/"):
            await screen.page.get_by_label("Theme").select_option(theme)
        await page.goto("/settings/")
        found[theme] = await looks(page)
    await context.close()
    assert found == expected
