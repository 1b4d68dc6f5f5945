"""Which drafts and which entries are believed."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compression.exceptions import DraftRejected
from compression.judging import redaction
from compression.judging.audit import (
    Checked,
    audit,
    check_draft,
    check_entries,
    check_summary,
    redact,
    redact_delta,
    salient,
)
from compression.judging.salience import slices
from compression.ledger.ledger import Addition, Delta, Lift, Supersession
from compression.types import Completion, Entry, Item, Ledger, Section
from tests.growth import growth

ITEMS = [
    Item(
        seq=1, role="user", tokens=9,
        text="Please don’t use  tabs, ever. Put get_user into src/app.py, port 8080, three times.",
    ),
    Item(seq=2, role="assistant", tokens=9, text="You must pay now. See https://example.org/a?b=1."),
    Item(seq=3, role="user", tokens=9, text="Never push to main. I do not like answers in French."),
    Item(seq=4, role="assistant", tokens=9, text="BUG-123: 1,280 rows, v1.0.21, at 3f9ab412c."),
]  # fmt: skip


def entry(text: str, *sources: int, section: Section = Section.CONTEXT) -> Addition:
    return Addition(section=section, text=text, sources=sources)


def rule(text: str, *sources: int) -> Addition:
    return entry(text, *sources, section=Section.CONSTRAINTS)


@pytest.mark.parametrize(
    "answer",
    [
        Completion(text="", finish_reason="stop"),
        Completion(text=" \n\t", finish_reason="stop"),
        Completion(text="<think>well, let me see</think>\n", finish_reason="stop"),
        Completion(text="<think>well, let me see", finish_reason="stop"),
        Completion(text='{"narrative": "x"', finish_reason="length"),
        Completion(text='{"narrative": "x"}', finish_reason="content_filter"),
        Completion(text='{"narrative": "x"}', finish_reason=""),
        Completion(text='{"narrative": "x"}', finish_reason="tool_calls"),
        Completion(text='<tool_call>{"name": "x"}', finish_reason="stop"),
        Completion(text='{"name": "search", "arguments": {"q": 1}}', finish_reason="stop"),
        Completion(text="<!DOCTYPE html><html>502</html>", finish_reason="stop"),
        Completion(text="x" * 1_000_000, finish_reason="stop"),
        *(
            Completion(text=text, finish_reason="stop")
            for text in (
                "I'm sorry, but I can't help with that.", "I cannot assist.", "Sorry, no.",
                "As an AI language model, I …", "I won’t do this.", "Unfortunately, I am unable to",
                "Es tut mir leid, das geht nicht.", "Je ne peux pas vous aider.",
                "Lo siento, no puedo.", "抱歉，我无法完成。", "申し訳ありません。",
                "Я не могу помочь.",
                "Error: upstream timed out",
            )
        ),
    ],
)  # fmt: skip
def test_c05_what_is_no_summary_is_refused_with_a_reason(answer: Completion) -> None:
    """I11. Breaks when: ``check_draft`` leaves out the case."""
    with pytest.raises(DraftRejected) as refused:
        check_draft(answer)
    assert refused.value.message.endswith(".")


def test_an_echo_is_refused() -> None:
    prompt = "You keep the notes of a conversation. " * 5
    with pytest.raises(DraftRejected):
        check_draft(Completion(text="Sure: " + prompt, finish_reason="stop"), prompt=prompt)
    with pytest.raises(DraftRejected):
        check_draft(Completion(text="<notes-ab12>", finish_reason="stop"), secret="ab12")


def test_a_good_answer_loses_only_its_reasoning() -> None:
    answer = Completion(text='<think>hm {}</think>\n{"narrative": "x"}', finish_reason="stop")
    assert check_draft(answer) == '{"narrative": "x"}'


@pytest.mark.parametrize("text", ["", "## Summary\n- … [1–3]", "<html>", "- I cannot help."])
def test_a_summary_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(DraftRejected):
        check_summary(text, ITEMS)


def test_a_summary_of_something_is_fit() -> None:
    check_summary("## Summary\n- They set up an app. [1–3]", ITEMS)


@pytest.mark.parametrize(
    "addition",
    [
        rule("don't use tabs", 1), rule("Never push to main.", 3),
        rule("“don’t use tabs, ever”", 1),
        entry("port = 8080", 1), entry("get_user is in src/app.py", 1), entry("done 3 times", 1),
        entry("they must pay", 2), entry("https://example.org/a?b=1", 2), entry("BUG-123", 4),
        entry("v1.0.21", 4), entry("1,280 rows, 1280 rows", 4), entry("commit 3f9ab41", 4),
    ],
)  # fmt: skip
def test_what_its_sources_say_is_kept(addition: Addition) -> None:
    checked = check_entries(Delta(add=(addition,)), ITEMS, Ledger())
    assert checked.kept.add == (addition,)
    assert checked.problems == ()


@pytest.mark.parametrize(
    "addition",
    [
        rule("You must pay now.", 2), rule("use tabs", 1), rule("push to main", 3),
        rule("like answers in French", 3), rule("Avoid tabulators.", 1), rule("ever" * 200, 1),
        entry("port = 8081", 1), entry("src/other.py", 1), entry("get_users", 1),
        entry("https://evil.example/", 2), entry("port = 8080", 2), entry("x", 9), entry("x"),
        entry("5 times", 1), entry("port = 80", 1), entry("port = 808", 1), entry("BUG-12", 4),
        entry("v1.0.2", 4), entry("Пользователь говорит о сервере", 1, section=Section.DONE),
    ],
)  # fmt: skip
def test_what_its_sources_do_not_say_is_dropped(addition: Addition) -> None:
    """Breaks when: an assistant's words, a negated rule or a part of a number are believed."""
    checked = check_entries(Delta(narrative="ok", add=(addition,)), ITEMS, Ledger())
    assert checked.kept.add == ()
    assert len(checked.problems) == len(checked.dropped) == 1


def test_a_rule_has_at_most_400_characters() -> None:
    """Breaks when: ``_EntryCheck.addition`` takes a constraint of any length."""
    said = "Never push " + "word " * 100
    items = [Item(seq=1, role="user", text=said, tokens=9)]
    for length, kept in ((400, 1), (401, 0)):
        # Within a word nothing would be found.
        text = said[: length - 3].rsplit(" ", 1)[0]
        text += " " * (length - len(text) - 4) + "word"
        checked = check_entries(Delta(narrative="ok", add=(rule(text, 1),)), items, Ledger())
        assert len(text) == length
        assert len(checked.kept.add) == kept


def test_a_rule_that_cites_the_wrong_message_gets_the_right_one() -> None:
    checked = check_entries(Delta(add=(rule("Never push to main.", 2),)), ITEMS, Ledger())
    assert checked.kept.add == (rule("Never push to main.", 3),)


def test_new_text_may_lean_on_the_old_entrys() -> None:
    ledger = Ledger(entries=(Entry(id=7, section=Section.CONTEXT, text="version = 4.2.1"),))
    good = Supersession(id=7, text="version = 4.2.1, port 8080", sources=(1,))
    bad = Supersession(id=7, text="version = 4.2.2", sources=(1,))
    checked = check_entries(Delta(supersede=(good, bad)), ITEMS, ledger)
    assert checked.kept.supersede == (good,)


def test_the_narrative_may_not_invent_either() -> None:
    assert check_entries(Delta(narrative="They met in 2031."), ITEMS, Ledger()).kept.narrative == ""


def test_the_language_of_the_conversation_is_kept() -> None:
    items = [Item(seq=1, role="user", text="请把服务器端口改成八千，然后写测试", tokens=9)]
    english = Delta(narrative="The user asked for a change of the server.")
    chinese = Delta(narrative="用户要求修改服务器端口")
    assert check_entries(english, items, Ledger()).problems
    assert not check_entries(chinese, items, Ledger()).problems


SECRETS = [
    "sk-proj-abcdefghijklmnop1234", "ghp_" + "a1" * 18, "AKIAIOSFODNN7EXAMPLE",
    "Bearer abcdef0123456789", "password: hunter22", 'API_KEY="abcd1234efgh"',
    "postgres://me:s3cret@db/x", "xoxb-123456789012-abcdef",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijkl",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    "rk_live_abcdefghijklmnop", "github_pat_" + "b2" * 12, "glpat-" + "c3" * 10, "hf_" + "d4" * 12,
    "AIza" + "e5" * 16, "ya29." + "f6" * 12, "npm_" + "g7" * 18, "pypi-" + "h8" * 18,
    f"SG.{'i9' * 10}.{'j0' * 10}", "Basic abcdef0123456789", "token abcdef0123456789",
    "passphrase=hunter22", "passwort: hunter22", "secret=hunter22", "access_token=hunter22",
    "private-key: hunter22", "ASIA" + "K1" * 8, "pk_test_abcdefghijklmnop", "ghr_" + "l2" * 18,
]  # fmt: skip


@pytest.mark.parametrize("secret", SECRETS)
def test_secrets_are_redacted(secret: str) -> None:
    text, count = redact(f"Use {secret} for it.")
    assert count == 1
    assert "[redacted]" in text
    assert secret not in text
    assert redact(text)[1] == 0


@given(
    st.lists(
        st.one_of(st.sampled_from(SECRETS), st.text("skpßıK ſ-_.:=/@abE", max_size=8)), max_size=6
    ),
    st.randoms(use_true_random=False),
)
def test_looking_for_signs_first_misses_no_secret(parts: list[str], random: Random) -> None:
    """Whatever a pattern takes for the same letter.

    Breaks when: a pattern finds something that holds none of its signs.
    """
    like = {"s": "sSſ", "k": "kKK", "i": "iIı"}
    words = "".join(parts)
    text = "".join(random.choice(like.get(one.lower(), one)) for one in words)
    signs = tuple(("",) for _ in redaction._SIGNS)
    with patch.object(redaction, "_SIGNS", signs):
        plainly = redact(text)
    assert redact(text) == plainly


def test_plain_words_are_not_secrets() -> None:
    text = "The password field is empty; the task-list and a token are fine. key = value"
    assert redact(text) == (text, 0)


def test_a_delta_is_redacted_everywhere() -> None:
    secret = "password=hunter22"
    delta = Delta(
        narrative=secret,
        add=(entry(secret, 1),),
        supersede=(Supersession(id=1, text=secret, sources=(1,)),),
    )
    clean, count = redact_delta(delta)
    assert count == 3
    assert "hunter" not in repr(clean)


def test_the_audit_tells_what_is_kept_and_what_is_missing() -> None:
    report = audit(ITEMS, "- port 8080 in src/app.py [1]", evicted=("x",), notes=("n",))
    assert {"8080", "src/app.py"} <= salient(ITEMS[0].text)
    assert "get_user" in report.missing
    assert report.retained == report.salient - len(report.missing)
    assert 0 < report.retention < 1
    assert (report.evicted, report.notes) == (("x",), ("n",))


@pytest.mark.parametrize(
    "text",
    ["a/", "a_", "1.", "A", "aB", '"', "-", "http://", "sk-", "password=", "eyJ"],
)
def test_hostile_texts_take_linear_time(text: str) -> None:
    """Breaks when: a pattern looks at the rest of the text from each of its places."""

    def looked_at(characters: int) -> None:
        long = text * (characters // len(text))
        salient(long)
        redact(long)

    assert growth(looked_at, 30_000, 4) < 10


def test_a_secret_is_neither_salient_nor_told_as_missing() -> None:
    """Breaks when: the audit looks for salient items before the secrets are out."""
    secret = "ghp_abcdefghijklmnopqrstuvwx12"
    item = Item(seq=1, role="user", text=f"The token is {secret}, the port 8443.", tokens=20)
    assert audit([item], "Nothing.").missing == ("8443",)


RULES_TAKEN_BACK = (
    ("Always answer in French.", "You may answer in English again."),
    ("Always answer in French.", "From now on write in English."),
    ("Never skip the tests.", "Forget what I said about tests."),
    ("Never say banana.", "Never mind, that rule is silly."),
    ("Antworte immer auf Deutsch.", "Du darfst wieder Englisch schreiben."),
    ("必须用中文回答。", "现在可以用英文回答了。"),
    ("Never use tabs.", "Please use tabs in the Makefile."),
)
RULES_NOT_TAKEN_BACK = (
    ("Always answer in French.", "What is the capital of Peru?"),
    ("Never write to production.", "Thanks! " + "The weather is fine here. " * 20),
    ("Never use tabs.", "Put the parser into src/parse.py, please, and run it once."),
    ("必须用中文回答。", "今天的天气怎么样？"),
)


@pytest.mark.parametrize(("stated", "message"), RULES_TAKEN_BACK)
def test_a_user_who_takes_a_rule_back_lifts_it(stated: str, message: str) -> None:
    assert lifted(stated, message).kept.lift


@pytest.mark.parametrize(("stated", "message"), RULES_NOT_TAKEN_BACK)
def test_i18_a_model_cannot_lift_a_rule_by_any_message(stated: str, message: str) -> None:
    """I18. Breaks when: ``check_entries`` believes every lift that cites a user message."""
    checked = lifted(stated, message)
    assert checked.kept.lift == ()
    assert "take that rule back" in checked.dropped[0]


def lifted(stated: str, message: str) -> Checked:
    """What is left of a lift that cites this message."""
    ledger = Ledger(entries=(Entry(id=4, section=Section.CONSTRAINTS, text=stated, sources=(1,)),))
    items = [Item(seq=9, role="user", text=message, tokens=9)]
    return check_entries(Delta(lift=(Lift(id=4, source=9),)), items, ledger)


@pytest.mark.parametrize("times", [8, 20])
def test_a_copied_message_is_no_entry(times: int) -> None:
    """Breaks when: an entry may be as long as a message, or repeat one."""
    long = "They said a great deal about it. " * times
    items = [Item(seq=1, role="user", text=long, tokens=200)]
    checked = check_entries(Delta(add=(entry(long, 1),)), items, Ledger())
    assert checked.kept.add == ()


def test_a_huge_message_is_looked_at_in_slices_and_nothing_is_missed() -> None:
    """I25. Breaks when: a slice is lost, or one pattern walks over a whole text at once."""
    text = " ".join(f"box {number} holds part_{number}" for number in range(20_000, 24_000))
    parts = list(slices(text))
    assert "".join(parts) == text
    assert max(map(len, parts)) <= 8_000
    assert list(slices("x" * 20_000)) == ["x" * 8_000, "x" * 8_000, "x" * 4_000]
    item = Item(seq=1, role="user", text=text, tokens=20_000)
    assert audit([item], "").salient == 8_000


def test_a_private_key_is_not_told_in_parts() -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIabc_def1234\n" * 1500 + "-----END PRIVATE KEY-----"
    item = Item(seq=1, role="user", text=key, tokens=9_000)
    assert audit([item], "").missing == ()
