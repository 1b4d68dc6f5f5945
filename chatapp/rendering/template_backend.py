"""Django's templates, which leave nothing behind: what a page was made of is freed at its end.

Django's context of a request refers to a dict that refers to it, so that all it holds, the texts of
a whole page, would stay until the garbage collector looks for such circles among everything old.
It looks when many objects are new, and a page is few objects: 70 MB were waiting for it.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.template import TemplateDoesNotExist
from django.template.backends.django import DjangoTemplates, Template, reraise
from django.template.context import make_context
from django.utils.safestring import SafeString


class Templates(DjangoTemplates):
    """Django's backend for templates, with :class:`FreeingTemplate`."""

    def get_template(self, template_name: str) -> FreeingTemplate:
        """A template by its name. Raises TemplateDoesNotExist."""
        return FreeingTemplate(super().get_template(template_name).template, self)

    def from_string(self, template_code: str) -> FreeingTemplate:
        """A template from its text."""
        return FreeingTemplate(super().from_string(template_code).template, self)


class FreeingTemplate(Template):
    """A template whose context is emptied when it has been rendered."""

    def render(
        self, context: dict[str, Any] | None = None, request: HttpRequest | None = None
    ) -> SafeString:
        """The result, made as Django makes it."""
        whole = make_context(context, request, autoescape=self.backend.engine.autoescape)
        try:
            return self.template.render(whole)
        except TemplateDoesNotExist as missing:
            reraise(missing, self.backend)
        finally:
            # The dicts of a context refer to it.
            whole.dicts.clear()
