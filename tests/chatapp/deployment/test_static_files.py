"""What is stored of the static files for serving."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import django_htmx
from django.core.management import call_command

from chatapp import settings as product


def test_our_scripts_are_served_without_comments_and_nothing_else_is_touched(
    settings: Any, tmp_path: Path
) -> None:
    """Breaks when: scripts are stored as they are, or another library's files are changed."""
    settings.STATIC_ROOT, settings.STORAGES = tmp_path, product.STORAGES
    call_command("collectstatic", interactive=False, verbosity=0)
    [source] = settings.STATICFILES_DIRS
    for script in (source / "js").iterdir():
        text, served = script.read_text(), (tmp_path / "js" / script.name).read_text()
        assert text.startswith("// ")
        assert not served.startswith("//")
        assert len(served) < len(text)
        [hashed] = (tmp_path / "js").glob(f"{script.stem}.????????????.js")
        assert len(hashed.read_text()) >= len(served)
    for sheet in (source / "css").iterdir():
        assert (tmp_path / "css" / sheet.name).read_bytes() == sheet.read_bytes()
    served = tmp_path / "django_htmx" / "htmx-2.min.js"
    [origin] = Path(django_htmx.__file__).parent.glob(f"**/{served.name}")
    assert served.read_bytes() == origin.read_bytes()
