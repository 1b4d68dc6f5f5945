"""The words by which rules, decisions and open ends are told in eleven languages. Pure.

Deliberately few and plain: a rule taken for one that is none costs a line; the opposite costs a
promise. Sources: everyday usage; tried on real coding chats and on long two-person dialogues.
"""

from __future__ import annotations

import re

_I = re.IGNORECASE

STRONG_RULE = re.compile(
    r"\b(?:always|never|must(?: not|n't)?|under no circumstances|from now on|at all times"
    r"|without exception|no matter what|keep in mind|remember (?:that|to)|call me|allerg\w+"
    r"|non-negotiable|is (?:not allowed|forbidden)|only (?:ever|use|write|answer|reply|respond))\b"
    r"|(?:^|[,;:(]\s*|\b(?:please|and|but|also|so|you)\s+)(?:don['’]t|do not)\b"
    r"|\b(?:immer|niemals?|nie wieder|auf keinen fall|ab (?:jetzt|sofort)|muss|müssen|darf nicht"
    r"|dürfen nicht|toujours|jamais|à partir de maintenant|ne \w+ (?:pas|plus|jamais)|siempre"
    r"|nunca|jamás|a partir de ahora|debes?|sempre|de agora em diante|deve|non \w+ mai|mai più"
    r"|altijd|nooit|vanaf nu|moet(?:en)?|всегда|никогда|нельзя|обязательно|отныне)\b"
    r"|总是|始终|永远|绝不|从不|必须|不要|不得|禁止|务必|切勿|從不|必須|總是|絕不"
    r"|常に|必ず|決して|絶対に|しないで|禁止|항상|절대|반드시|하지 ?마",
    _I,
)
WEAK_RULE = re.compile(
    r"\bplease (?:use|keep|make|write|answer|reply|respond|stick|avoid|ensure|prefer|only)\b"
    r"|\b(?:i prefer|make sure|be sure to|avoid|stick to|should(?: not|n't)? (?:be|use|have|never)"
    r"|instead of)\b|\b(?:bitte (?:nutze|verwende|schreib\w*|antworte)|verwende|vermeide"
    r"|s'il (?:te|vous) plaît|utilise[rz]?|évite[rz]?|por favor|usa|evita|use sempre|per favore"
    r"|alsjeblieft|gebruik|пожалуйста|используй(?:те)?|избегай(?:те)?)\b"
    r"|请(?:用|使用|不)|請(?:用|使用)|ください|해 ?주세요",
    _I,
)
NOT_A_RULE = re.compile(
    r"\b(?:i|it|he|she|they|we|that|this|which|who|there|i['’]ve|we['’]ve|i['’]d)\s+"
    r"(?:have |has |had |was |were |would |can |could |will |am |is |are )?(?:also |just |almost )?"
    r"(?:always|never|must)\b|\b(?:never (?:mind|give up)|as always|you must be|must have been"
    r"|must be (?:a|so))\b|(?:\bnot|n['’]t) always\b"
    r"|\b(?:ich|er|sie|es|wir) (?:habe?n? )?(?:immer|nie)\b",
    _I,
)
DECISION = re.compile(
    r"\b(?:let['’]?s (?:use|go|keep|do|make|stick)|we(?:['’]ll| will) (?:use|go|keep)|decided"
    r"|(?:i['’]ll|i will|we) (?:go|went) with|agreed|we chose|settled on|the plan is"
    r"|switch(?:ed)? to"
    r"|entschieden|wir nehmen|einigen uns|on (?:garde|prend|utilise)|décidé|decidido|vamos a usar"
    r"|acordado|vamos usar|deciso|usiamo|besloten|решили|будем использовать)\b"
    r"|决定|決定|采用|採用|にします|にしよう|하기로",
    _I,
)
OPEN_END = re.compile(
    r"\b(?:todo|to do|still (?:need|have) to|not yet|remaining|next steps?|follow[- ]?up|later we"
    r"|open question|noch (?:offen|zu tun)|fehlt noch|il reste|reste à|pendiente|falta|pendente"
    r"|da fare|nog te doen|осталось|ещё нужно)\b|待办|待辦|还需要|還需要|まだ|残り|남은|아직",
    _I,
)
PAIR = re.compile(r"^[-*\s]{0,6}([^\W\d][\w .-]{1,40}?)\s{0,3}[=:：]\s{0,3}(\S[^\n]{0,80})$")
NUMBER = re.compile(r"\d[\d.,:/%-]{0,20}")
NAME = re.compile(r"(?<=[\w,;:] )[A-Z][\w-]{2,30}(?![!?.,]?$)")
#: Not at a sentence's start, where every word is capital, nor at its end, where people are called.
END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")
LONGEST_RULE = 400
#: Characters of a constraint at most; it is the user's own words.


def rule_strength(sentence: str) -> int:
    """2 for a standing rule, 1 for a wish, 0 for neither. A mere question is neither."""
    if not len(sentence) >= 4:
        return 0
    asked = sentence.rstrip().endswith(("?", "？"))
    if STRONG_RULE.search(sentence) and not asked:
        told = NOT_A_RULE.sub(" ", sentence)
        if STRONG_RULE.search(told):
            return 2
    return 1 if WEAK_RULE.search(sentence) and not asked else 0
