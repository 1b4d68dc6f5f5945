"""Markdown as safe HTML, whole or while it streams. Pure: no request, no settings, no database.

:func:`render` gives the HTML of page loads, the admin and exports. While a reply streams,
:class:`StreamRenderer` gives each complete block once, and the open block at each flush. At the end
:meth:`StreamRenderer.finish` gives :func:`render` of the whole reply, so that the screen is the
same as after a reload.
"""

from __future__ import annotations

from chatapp.rendering.markdown.blocks import render_message as render
from chatapp.rendering.markdown.cost_estimate import LARGE
from chatapp.rendering.markdown.stream import StreamRenderer, Update, last_line

__all__ = ["LARGE", "StreamRenderer", "Update", "last_line", "render"]
