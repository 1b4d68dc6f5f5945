"""The loader of ``templates/``: layout for people, not a byte of which is sent."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.template import Context, Engine, Template, TemplateDoesNotExist, TemplateSyntaxError
from hypothesis import given
from hypothesis import strategies as st

from chatapp.template_loader import join_lines

BREAKS = st.sampled_from(["\n", "\n  ", " \n\n\t", "\r\n    "])
#: What a break beside is nothing.
TAGS = st.sampled_from(
    ["<p>", "</p>", '<a href="x>y" hidden>', "<br>", "{% if a < b %}", "{% endif %}", '{{ " " }}']
)
WORDS = st.sampled_from(["word", "it's", "&gt;", "{{ value|default:'<' }}", ".", "→"])
VERBATIM = st.text(st.sampled_from("ab \n\t'\"=."), max_size=30)


def engine(folder: Path) -> Engine:
    return Engine(
        dirs=[str(folder)],
        loaders=["chatapp.template_loader.Loader"],
        libraries={"static": "django.templatetags.static"},
    )


@pytest.mark.parametrize(
    ("source", "joined"),
    [
        ("<ul>\n  <li>\n    one\n  </li>\n</ul>\n", "<ul><li>one</li></ul>"),
        ("<p>\n  two\n  {{ words }}\n  here.\n</p>", "<p>two {{ words }} here.</p>"),
        (
            '<a\n  href="x"\n  class="a\n  b"\n  hidden\n>go</a>',
            '<a href="x" class="a b" hidden>go</a>',
        ),
        ("<img\n  alt='it is > this'\n/>\nx", "<img alt='it is > this'/>x"),
        (
            "<a\n  id=x\n  {% if y %} hidden{% endif %}\n  {% if z %}\n    rel=z\n  {% endif %}\n>",
            "<a id=x{% if y %} hidden{% endif %}{% if z %} rel=z{% endif %}>",
        ),
        ("<a\n  {% if y %} hidden{% endif %}\n  rel=z>", "<a{% if y %} hidden{% endif %} rel=z>"),
        ('one{{ " " }}\n<b>two</b>{{ " " }}\nthree', "one <b>two</b> three"),
        ("a{# why #} b{# not #}\n{# that #}\n  c", "a b c"),
        ("a\n{# why #}\nb", "a b"),
        ("{# why #}\n\nwords\nof {{ it }}\n", "words of {{ it }}"),
        ("{% comment %}\n<a\n{% endcomment %}\n<b>\nc", "<b>c"),
        ("a\xa0\n\xa0b", "a\xa0 \xa0b"),
    ],
)
def test_what_a_line_break_is(source: str, joined: str) -> None:
    assert join_lines(source) == joined


@given(st.lists(st.tuples(TAGS | WORDS | st.just(" "), BREAKS, st.booleans()), max_size=12))
def test_a_break_beside_an_element_or_a_tag_changes_nothing(
    pieces: list[tuple[str, str, bool]],
) -> None:
    """Breaks when: a break is kept, or made a blank, where an element or a tag stands beside it."""
    plain, laid_out, last = "", "", ""
    for piece, line_break, broken in pieces:
        beside = any(
            one.startswith(("<", "{%", "{{ ")) and "value" not in one for one in (last, piece)
        )
        if broken and last and beside and " " not in (last, piece):
            laid_out += line_break
        plain, laid_out, last = plain + piece, laid_out + piece, piece
    assert join_lines(laid_out) == join_lines(plain) == plain.replace('{{ " " }}', " ")


@given(st.lists(WORDS, min_size=2, max_size=8), BREAKS)
def test_words_on_several_lines_are_one_text(words: list[str], line_break: str) -> None:
    """Breaks when: words of two lines are run together."""
    assert join_lines(f"<p>{line_break.join(words)}</p>") == f"<p>{' '.join(words)}</p>"


@given(VERBATIM, st.sampled_from(["pre", "textarea", "script", "style"]))
def test_what_is_meant_to_the_letter_stays(text: str, name: str) -> None:
    """Breaks when: a draft loses its first line break, or a preformatted text its lines."""
    inner = f"<{name} id='a'>{text}{{{{ more }}}}{text}</{name}>"
    assert join_lines(f"<p>\n  {inner}\n</p>") == f"<p>{inner}</p>"


@given(st.text(st.sampled_from("ab <>/='\"{%}#\n\t"), max_size=60))
def test_any_text_gets_no_longer_and_is_joined_once(source: str) -> None:
    joined = join_lines(source)
    assert len(joined) <= len(source)
    assert len(join_lines(joined)) <= len(joined)


def test_a_part_is_put_in_place(tmp_path: Path) -> None:
    """Breaks when: an include without arguments costs a lookup and a context each time."""
    (tmp_path / "whole.html").write_text('<p>\n  {% include "part.html" %}\n  {{ b }}\n</p>\n')
    (tmp_path / "part.html").write_text("{% load static %}\n\n<b>\n  {{ a }}{# so #}\n</b>\n")
    whole = engine(tmp_path).get_template("whole.html")
    assert whole.source == "<p>{% load static %}<b>{{ a }}</b>{{ b }}</p>"
    assert whole.render(Context({"a": "<", "b": 2})) == "<p><b>&lt;</b>2</p>"


def test_an_include_with_arguments_or_of_another_folder_stays(tmp_path: Path) -> None:
    source = (
        '{% include "part.html" with a=1 only %}{% include "admin/filter.html" %}{% include x %}'
    )
    (tmp_path / "whole.html").write_text(source)
    (tmp_path / "part.html").write_text("<b>{{ a }}</b>")
    assert engine(tmp_path).get_template("whole.html").source == source


def test_a_missing_part_is_told(tmp_path: Path) -> None:
    (tmp_path / "whole.html").write_text('{% include "none.html" %}')
    with pytest.raises(TemplateDoesNotExist, match=r"none\.html"):
        engine(tmp_path).get_template("whole.html").render(Context())


@pytest.mark.parametrize("mistake", ["{% endfor %}", "{% nothing %}", "{{ a|nothing }}"])
def test_a_mistake_is_told_with_what_django_says_of_the_file_itself(
    tmp_path: Path, mistake: str
) -> None:
    """Breaks when: the joined text alone is compiled, in which everything is on line 1."""
    source = f"<p>\n  one\n</p>\n{mistake}\n"
    (tmp_path / "whole.html").write_text(source)
    with pytest.raises(TemplateSyntaxError) as said:
        engine(tmp_path).get_template("whole.html")
    with pytest.raises(TemplateSyntaxError) as meant:
        Template(source, engine=engine(tmp_path))
    assert str(said.value) == str(meant.value)


def test_the_chats_own_templates_go_through_it_and_those_of_apps_do_not() -> None:
    """Breaks when: the settings name no loader of ours, or one for every folder."""
    templates = Engine.get_default()
    assert "\n" not in templates.get_template("frame.html").source
    assert "\n" in templates.get_template("admin/compression/summary.html").source
