"""Search in all of a person's conversations, or in one."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase

from chatapp.conversations import ownership
from chatapp.conversations.searching import asearch
from chatapp.errors import InvalidInput, RateLimited
from chatapp.forms import number, storable
from chatapp.views.answers import endpoint, user_id, wants_fragment, wants_json
from chatapp.views.pages import page_context, rendered
from compression.database import pending_of

QUERY_LENGTH = 500
# Nobody reads further; another word in the query finds more.
MOST_PAGES = 50
#: Searches of one person that wait or run, including those whose answer nobody waits for.
MOST_SEARCHES: Final = 8
#: Seconds after which a person with too many searches may try again.
TRY_AGAIN: Final = 5.0


def query_of(request: HttpRequest) -> str:
    """The words in ``?q=``."""
    return storable("q", request.GET.get("q", "").strip(), longest=QUERY_LENGTH)


def may_search(person: int) -> None:
    """Raise RateLimited while too many searches of the person wait or run."""
    if pending_of(person, "slow") >= MOST_SEARCHES:
        raise RateLimited(retry_after=TRY_AGAIN)


@endpoint("GET")
async def search(request: HttpRequest) -> HttpResponseBase:
    """Search for ``q``. ``in``: a conversation's code; ``sort``: best or newest; ``page``.

    Answers a page, a fragment, or JSON.
    """
    person = user_id(request)
    code = request.GET.get("in", "")
    if code:
        # A stranger's conversation is not found, whatever else the request says.
        await ownership.aowned(person, code)
    query = query_of(request)
    page = number(request.GET, "page") or 1
    if page > MOST_PAGES:
        raise InvalidInput.of("page", f"There are at most {MOST_PAGES} pages.")
    sort = request.GET.get("sort") or "best"
    if sort not in {"best", "newest"}:
        raise InvalidInput.of("sort", "Choose best or newest.")
    may_search(person)
    found = await asearch(person, query, code=code, page=page, newest_first=sort == "newest")
    if wants_json(request):
        return JsonResponse(found.as_json())
    values = {"found": found, "inside": code, "sort": sort, "next_page": page + 1}
    if wants_fragment(request):
        return await rendered(request, "partials/found.html", values)
    context = await page_context(request)
    return await rendered(request, "search.html", {**context, **values, "section": "search"})
