"""Markdown to safe HTML, whole or as it streams in. Pure: no request, no settings, no database.

:func:`render` is the truth: what a page load, the admin and an export show. While a reply streams,
:class:`StreamRenderer` sends each block once when it is complete and the open block again at each
flush; at the end :meth:`StreamRenderer.finish` gives :func:`render` of the whole, so that the
screen is the same as after a reload.
"""

from __future__ import annotations

from chatapp.rendering.markdown.blocks import render_message as render
from chatapp.rendering.markdown.cost_estimate import LARGE
from chatapp.rendering.markdown.stream import StreamRenderer, Update

__all__ = ["LARGE", "StreamRenderer", "Update", "render"]
