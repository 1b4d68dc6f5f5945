"""What a screen reader says of a page: every change of its live regions, in order."""

from __future__ import annotations

from tests.browser.screen import Screen

# As the browsers tell it: a status and an alert are read whole, of other live regions what is new;
# what is hidden is not read. A text that is written again is read again, be it the same. What is
# inserted together with its region is read of an alert only.
_LISTEN = """() => {
    window.heard = [];
    const LIVE = "[role=status], [role=alert], [aria-live]";
    const WHOLE = "[role=status], [role=alert], [aria-atomic=true]";
    const regionOf = (node) => {
        const element = node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement;
        const region = element?.closest(LIVE);
        return region?.ariaLive === "off" ? null : region;
    };
    const wordsOf = (root) => {
        const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
        const words = [];
        for (let text = root.nodeType === Node.TEXT_NODE ? root : texts.nextNode(); text;
            text = texts.nextNode()) {
            const {parentElement} = text;
            const read = parentElement?.checkVisibility({visibilityProperty: true});
            if (read && !parentElement.closest("[aria-hidden=true]")) words.push(text.data);
        }
        return words.join("").replace(/\\s+/g, " ").trim();
    };
    const changed = (records) => {
        const said = new Set();
        for (const {type, target, addedNodes} of records) {
            const region = regionOf(target);
            const added = type === "childList" ? [...addedNodes] : [target];
            if (region?.matches(WHOLE)) said.add(region);
            else if (region) added.forEach((node) => said.add(node));
            for (const node of added.filter((one) => one.nodeType === Node.ELEMENT_NODE)) {
                const alerts = [node, ...node.querySelectorAll("*")];
                alerts.filter((one) => one.role === "alert").forEach((one) => said.add(one));
            }
        }
        heard.push(...[...said].map(wordsOf).filter(Boolean));
    };
    new MutationObserver(changed).observe(document.body, {
        subtree: true, childList: true, characterData: true, attributeFilter: ["hidden"],
    });
}"""


async def listen(screen: Screen) -> None:
    """Note what is said from now on, until the page is left."""
    await screen.page.evaluate(_LISTEN)


async def heard(screen: Screen) -> list[str]:
    """What was said since, a sentence for each time that a live region spoke."""
    return list(await screen.page.evaluate("heard"))
