"""The manifest by which a browser installs the chat as an application."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.templatetags.static import static
from django.urls import reverse
from django.views.decorators.http import require_safe

# The paper of the light theme: it is shown until the page has loaded.
PAPER = "#faf6ed"
SIZES = (192, 512)


@require_safe
async def manifest(request: HttpRequest) -> JsonResponse:
    """The same for everybody: browsers ask for it without cookies.

    It promises nothing without a connection: there is no service worker.
    """
    home = reverse("home")
    icons = [{"src": static("icon.svg"), "type": "image/svg+xml", "sizes": "any"}]
    icons += [
        {
            "src": static(f"icons/{name}-{size}.png"),
            "type": "image/png",
            "sizes": f"{size}x{size}",
            "purpose": purpose,
        }
        for name, purpose in (("icon", "any"), ("maskable", "maskable"))
        for size in SIZES
    ]
    return JsonResponse(
        {
            "id": home,
            "name": "Palimpsest",
            "short_name": "Palimpsest",
            "description": "Conversations with language models that never run out of page.",
            "lang": "en",
            "start_url": home,
            "scope": home,
            "display": "standalone",
            "background_color": PAPER,
            "theme_color": PAPER,
            "categories": ["productivity"],
            "shortcuts": [{"name": "New conversation", "url": f"{home}?new"}],
            "icons": icons,
        },
        content_type="application/manifest+json",
    )
