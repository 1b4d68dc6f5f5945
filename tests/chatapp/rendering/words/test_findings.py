"""What a summary leaves out, gathered from the audits of the versions it came from."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.template.loader import render_to_string
from hypothesis import given, settings
from hypothesis import strategies as st

from chatapp.rendering.words import findings
from chatapp.rendering.words.findings import Findings


def version(number: int, text: str = "## Context\n- A line. [1]", **fields: Any) -> dict[str, Any]:
    """A version as the views have it, made on the one before; the active one if nothing is said."""
    values = {"parent": number - 1, "restored_from": None, "status": "active", "trigger": "manual"}
    return {"version": number, "text": text, "audit": {}, **values, **fields}


def audit(**fields: Any) -> dict[str, Any]:
    return {"salient": 3, "retained": 1, "missing": ["Malmö", "4711"], **fields}


def lines(found: Findings | None) -> dict[str, tuple[str, ...]]:
    assert found is not None
    return {one.kind: one.lines for one in found.lists}


def test_each_list_has_its_name() -> None:
    report = audit(
        evicted=["An old line."],
        dropped=["dropped: A claim (it cites no message)"],
        notes=[
            "kept by code: Always in euros.",
            "a rule is left out, there is no room: Never in pounds.",
            "dropped: Another (it cites no message)",
            "redacted: 2 secrets",
        ],
    )
    found = findings.of_active([version(1, audit=report)])
    assert lines(found) == {
        "unfitting": ("Never in pounds.",),
        "missing": ("Malmö", "4711"),
        "evicted": ("An old line.",),
        "refused": ("A claim (it cites no message)", "Another (it cites no message)"),
    }
    assert found is not None
    assert (found.asked, found.kept) == (3, 1)


def test_a_summary_leaves_out_what_the_versions_before_it_did() -> None:
    """Each version looks at the messages that it took in; a person's copies what it was made on.

    Breaks when: only the active version's audit is read, or what is in the text again is listed.
    """
    first = version(1, status="superseded", audit=audit())
    second = version(2, status="superseded", audit=audit(missing=["Lund"], salient=1, retained=0))
    edited = version(3, "## Context\n- In Malmö. [1]", trigger="edit", audit=second["audit"])
    found = findings.of_active([edited, second, first])
    assert lines(found) == {"missing": ("Lund", "4711")}
    assert found is not None
    assert (found.asked, found.kept) == (4, 1)


@pytest.mark.parametrize(
    "ends", [{"trigger": "clear", "text": ""}, {"restored_from": 0, "text": ""}]
)
def test_a_new_start_ends_what_was_left_out(ends: dict[str, Any]) -> None:
    first = version(1, status="superseded", audit=audit())
    cleared = version(2, **{"status": "superseded", **ends})
    third = version(3, audit=audit(missing=["Lund"]))
    assert lines(findings.of_active([third, cleared, first])) == {"missing": ("Lund",)}
    assert findings.of_active([{**cleared, "status": "active"}, first]) is None


def test_a_restored_version_leaves_out_what_that_version_did() -> None:
    first = version(1, status="superseded", audit=audit(missing=["Malmö"]))
    second = version(2, status="superseded", audit=audit(missing=["Lund"]))
    third = version(3, restored_from=1, trigger="restore", audit=first["audit"])
    assert lines(findings.of_active([third, second, first])) == {"missing": ("Malmö",)}


def test_of_a_version_written_anew_only_the_new_audit_counts() -> None:
    """Breaks when: the details of the same messages are counted for both versions."""
    made = version(1, trigger="manual", first_seq=1, audit=audit())
    anew = version(2, trigger="manual", first_seq=1, parent=1, status="active")
    anew["audit"] = audit(salient=4, retained=3, missing=["Lund"])
    found = findings.of_active([anew, made])
    assert found is not None
    assert (found.asked, found.kept) == (4, 3)
    assert lines(found) == {"missing": ("Lund",)}


def test_more_than_a_screen_is_counted() -> None:
    report = audit(salient=500, retained=100, missing=[f"detail {n}" for n in range(200)])
    found = findings.of_active([version(1, audit=report)])
    assert found is not None
    (missing,) = found.lists
    assert len(missing.lines) == findings.SHOWN
    assert missing.count == 400


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)
KEYS = ("salient", "retained", "missing", "evicted", "dropped", "notes")


@settings(max_examples=40)
@given(json_values | st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, json_values)))
def test_an_audit_may_have_any_shape(report: Any) -> None:
    """Breaks when: what an imported file calls an audit is trusted to be one."""
    one = version(1, audit=report)
    for found in (findings.of_active([one]), findings.of_version(one)):
        assert found is not None
        assert 0 <= found.kept <= found.asked
        for listed in found.lists:
            assert all(isinstance(line, str) and line for line in listed.lines)
            assert listed.more >= 0
        render_to_string("partials/sees/left_out.html", {"left_out": found})


def test_parents_may_lead_in_a_circle() -> None:
    first, second = version(1, parent=2, status="superseded"), version(2, parent=1)
    assert findings.of_active([second, first]) == Findings(asked=0, kept=0, lists=())


def test_a_huge_audit_takes_no_time() -> None:
    """Breaks when: the time grows with the square of what an imported file says."""
    report = audit(missing=["x" * 10_000 + str(n) for n in range(20_000)])
    many = [version(n, status="superseded", audit=report) for n in range(1, 60)]
    begun = time.perf_counter()
    found = findings.of_active([version(60, "a line\n" * 3000, audit=report), *many])
    assert time.perf_counter() - begun < 5
    assert found is not None
    assert all(len(line) <= findings.LONGEST for line in found.lists[0].lines)


def test_what_is_left_out_is_shown_as_characters() -> None:
    found = findings.of_version(version(1, audit=audit(missing=["<b>bold</b>", "a\u202eb"])))
    html = render_to_string("partials/sees/left_out.html", {"left_out": found})
    assert "<b>" not in html
    assert "\u202e" not in html
    assert "What only the messages have" in html
    assert '<span class="figures">2</span>' in html
