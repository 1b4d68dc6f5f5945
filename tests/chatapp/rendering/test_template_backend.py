from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
from django.template import TemplateDoesNotExist, engines
from django.template.loader import get_template
from django.test import RequestFactory

from chatapp.rendering.template_backend import FreeingTemplate


class Page:
    """What a page is made of."""

    text = "<Hello>"


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("asked", [True, False])
def test_i26_what_a_page_was_made_of_is_freed_at_its_end(rf: RequestFactory, asked: bool) -> None:
    """Six people who open the longest pages would else fill 70 MB before anybody looks.

    Breaks when: the context of a rendered template is left to the garbage collector.
    """
    page = Page()
    known = weakref.ref(page)
    template = engines["django"].from_string("{% with one=page %}{{ one.text }}{% endwith %}")
    html = template.render({"page": page}, rf.get("/") if asked else None)
    del page
    assert html == "&lt;Hello&gt;"
    assert known() is None


def test_a_missing_template_is_named() -> None:
    missing = engines["django"].from_string('{% include "not/there.html" %}')
    with pytest.raises(TemplateDoesNotExist, match="not/there"):
        missing.render({})


def test_every_template_of_the_product_is_freed() -> None:
    """Breaks when: a template that is found by its name is Django's own."""
    assert isinstance(get_template("partials/article.html"), FreeingTemplate)


def test_a_pages_own_values_come_before_those_of_all_pages(rf: RequestFactory) -> None:
    template = engines["django"].from_string("{{ user }} {{ request.path }}")
    assert template.render({"user": "mine"}, rf.get("/here/")) == "mine /here/"
