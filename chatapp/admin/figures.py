"""The page of figures: what summaries kept, cost, and made people wait for, by day and model."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from chatapp.activity.plot import plotted
from chatapp.admin.sources import SummarySources
from chatapp.conversations.summaries.figures import MEASURES, by_model, figures, for_plot
from chatapp.rendering.words import labels

#: Days that the page can show.
DAYS = (7, 30, 90)
_MEASURES = {
    "kept": "Details kept",
    "waited": "Time waited",
    "cost": "Money",
    "failures": "Failures",
    "made": "Summaries",
}


class SummaryFigures(SummarySources):
    """The figures of all summaries, for people who may see these; no one's words are in them."""

    def get_urls(self) -> list[URLPattern]:
        """The figures, before the addresses of single rows."""
        view = self.admin_site.admin_view(self.figures_view)
        return [path("figures/", view, name="chatapp_summary_figures"), *super().get_urls()]

    def figures_view(self, request: HttpRequest) -> HttpResponse:
        """The figures of the last days. Raises PermissionDenied."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        days, measure, model = self._asked(request)
        last = timezone.localdate()
        first = last - timedelta(days=days - 1)
        rows = figures(first, last, model)
        context = {
            **self.admin_site.each_context(request),
            **self.list_context(request),
            "title": "Figures of summaries",
            "list_url": reverse("admin:chatapp_summary_changelist"),
            "opts": self.opts,
            "media": self.media,
            "measure": measure,
            "measures": [
                (name, _MEASURES[name], urlencode({"days": days, "model": model, "measure": name}))
                for name in MEASURES
            ],
            "days": days,
            "spans": [
                (one, urlencode({"measure": measure, "model": model, "days": one})) for one in DAYS
            ],
            "model": self.shown(model),
            "plot": plotted(for_plot(rows), first=first, last=last, measure=measure),
            "models": [
                {
                    **row,
                    "shown": labels.maker(row["model"]) or "no model",
                    "query": urlencode({"measure": measure, "days": days, "model": row["model"]}),
                }
                for row in by_model(rows)
            ],
            "all_models": urlencode({"measure": measure, "days": days}),
        }
        return TemplateResponse(request, "admin/chatapp/summary/figures.html", context)

    def _asked(self, request: HttpRequest) -> tuple[int, str, str]:
        """Days, measure and model of the address; the usual ones for anything else."""
        days, measure = request.GET.get("days", ""), request.GET.get("measure", "")
        return (
            next((one for one in DAYS if str(one) == days), 30),
            measure if measure in MEASURES else MEASURES[0],
            request.GET.get("model", "").replace("\x00", "")[:200],
        )
