from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.text.slugs import RESERVED, numbered, slug_of

SLUG = re.compile("[a-z0-9_]{1,50}")


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("My Novel!", "my_novel"),
        ("Übergröße", "ubergrosse"),
        ("Łódź 2", "lodz_2"),
        ("Война и мир", "voina_i_mir"),
        ("Οδύσσεια", "odysseia"),
        ("にほんご", "nihongo"),
        ("小说 3", "3"),
        ("小说", "project"),
        ("../../etc/passwd", "etc_passwd"),
        ("CON.txt\x00", "con_txt"),
        ("Default", "default_2"),
        ("a" * 80, "a" * 50),
        ("", "project"),
    ],
)
def test_a_name_becomes_one_for_the_file_system(name: str, slug: str) -> None:
    assert slug_of(name) == slug


@given(st.text(max_size=80), st.integers(2, 400))
def test_whatever_the_name_it_is_a_folder_of_its_own(name: str, number: int) -> None:
    slug = slug_of(name)
    assert SLUG.fullmatch(slug)
    assert slug not in RESERVED
    assert SLUG.fullmatch(numbered(slug, number))
    assert numbered(slug, number) != slug
