"""What is stored of the static files for serving."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import django_htmx
from django.core.management import call_command

from chatapp import settings as product
from chatapp.deployment.static_files import StaticFilesStorage


def collect(settings: Any, folder: Path) -> None:
    """Into this folder, as a deployment does without ``--clear``."""
    settings.STATIC_ROOT, settings.STORAGES = folder, product.STORAGES
    call_command("collectstatic", interactive=False, verbosity=0)


def served_as(name: str) -> str:
    """Its name with the hash, as pages name it after the last collecting."""
    return str(StaticFilesStorage().stored_name(name))


def without_comments(sheet: str) -> list[str]:
    """Its lines, for sheets of ours: there, no string holds a comment."""
    text = re.sub(r"/\*[^*]*\*+(?:[^/*][^*]*\*+)*/", "", sheet)
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def test_what_is_ours_is_served_without_comments_and_nothing_else_is_touched(
    settings: Any, tmp_path: Path
) -> None:
    """Breaks when: scripts or sheets are stored as they are, or a library's files are changed."""
    collect(settings, tmp_path)
    [source] = settings.STATICFILES_DIRS
    for script in (source / "js").iterdir():
        text, served = script.read_text(), (tmp_path / "js" / script.name).read_text()
        assert text.startswith("// ")
        assert not served.startswith("//")
        assert len(served) < len(text)
        [hashed] = (tmp_path / "js").glob(f"{script.stem}.????????????.js")
        assert len(hashed.read_text()) >= len(served)
    for name in ("app", "code", "print", "admin"):
        assert "/*" in (source / "css" / f"{name}.css").read_text()
        assert "/*" not in (tmp_path / served_as(f"css/{name}.css")).read_text()
    served = tmp_path / "django_htmx" / "htmx-2.min.js"
    [origin] = Path(django_htmx.__file__).parent.glob(f"**/{served.name}")
    assert served.read_bytes() == origin.read_bytes()


def test_other_languages_of_the_admin_are_not_served(settings: Any, tmp_path: Path) -> None:
    """Breaks when: a process keeps the headers of a hundred files that nobody fetches."""
    collect(settings, tmp_path)
    words = tmp_path / "admin" / "js" / "vendor" / "select2" / "i18n"
    assert {file.name.split(".")[0] for file in words.iterdir()} == {"en"}


def test_a_style_sheet_is_served_whole(settings: Any, tmp_path: Path) -> None:
    """All parts of ``app.css`` in their order, so that a page asks for one file.

    Breaks when: parts are left for the browser to fetch, are joined in another order, or one that
    an imported sheet imports is left out.
    """
    collect(settings, tmp_path)
    [source] = settings.STATICFILES_DIRS
    rules = (source / "css" / "app.css").read_text()
    names = re.findall(r'@import "(.*?)"', rules)
    assert len(names) > 15
    parts = [(source / "css" / name).read_text() for name in names]
    served = served_as("css/app.css")
    text = (tmp_path / served).read_text()
    assert "@import" not in text
    # Files that a sheet refers to have the hash of their content in their names.
    plain = re.sub(r"\.[0-9a-f]{12}(\.woff2)", r"\1", text)
    assert without_comments("\n".join(parts)) == [line for line in plain.splitlines() if line]
    assert (tmp_path / "css" / "app.css").read_text() == plain
    assert (tmp_path / f"{served}.gz").exists()
    # No page names a part: there is nothing but the copy that Django makes of every source.
    assert [
        path.name for path in (tmp_path / "css" / "app").iterdir() if path.suffix == ".gz"
    ] == []


def test_a_part_that_changed_changes_what_is_served(settings: Any, tmp_path: Path) -> None:
    """With another address, since browsers keep what they have of the old one.

    Breaks when: the sheet is hashed by its imports, or is joined only where it changed itself; or
    when what a string holds is taken for a comment.
    """
    source, served = tmp_path / "source", tmp_path / "served"
    (source / "css" / "app" / "inner").mkdir(parents=True)
    (source / "css" / "app.css").write_text(
        '/* Ours. */\n@import "app/outer.css";\n\np {} /* P */\n'
    )
    (source / "css" / "app" / "outer.css").write_text('@import "inner/a.css";\nb {}\n')
    inner = source / "css" / "app" / "inner" / "a.css"
    inner.write_text('q::before { content: "/*"; }\n')
    settings.STATICFILES_DIRS = [source]
    collect(settings, served)
    first = served_as("css/app.css")
    assert (served / first).read_text() == 'q::before { content: "/*"; }\nb {}\n\np {}\n'
    inner.write_text("u {}\n")
    collect(settings, served)
    second = served_as("css/app.css")
    assert second != first
    assert (served / second).read_text() == "u {}\nb {}\n\np {}\n"


def test_nothing_is_stored_when_only_asked(settings: Any, tmp_path: Path) -> None:
    """Breaks when: ``collectstatic --dry-run`` joins sheets."""
    settings.STATIC_ROOT, settings.STORAGES = tmp_path, product.STORAGES
    call_command("collectstatic", interactive=False, verbosity=0, dry_run=True)
    assert list(tmp_path.iterdir()) == []
