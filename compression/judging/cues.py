"""The words by which rules, decisions and open ends are told in eleven languages. Pure.

Deliberately few and plain: a rule taken for one that is none costs a line; the opposite costs a
promise. Sources: everyday usage; tried on real coding chats and on long two-person dialogues.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

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
    r"|常に|必ず|決して|絶対に|しないで|ないで(?:ください|下さい)|禁止|항상|절대|반드시|하지 ?마",
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
    r"\b(?:todo|to do(?! with)|still (?:need|have) to|not yet|remaining|next steps?|follow[- ]?up"
    r"|later we|open question|noch (?:offen|zu tun)|fehlt noch|il reste|reste à|pendiente|falta"
    r"|pendente|da fare|nog te doen|осталось|ещё нужно)\b"
    r"|待办|待辦|还需要|還需要|まだ|残り|남은|아직",
    _I,
)
TOLD = re.compile(
    r"\b(?:my|mine|our|ours|i['’]?m|i am|i (?:have|live|work|use|was born)|we (?:are|have|use)"
    r"|(?:is|are) (?:called|named)|mein\w*|unser\w*|ich (?:bin|heiße|heisse|habe|wohne|arbeite)"
    r"|wir (?:sind|haben)|mon|ma|mes|notre|nos|je suis|j['’]ai|je m['’]appelle|mi|mis|nuestr\w+"
    r"|soy|tengo|me llamo|meus?|minhas?|nosso|nossa|mio|mia|miei|nostr\w|mi chiamo|mijn|onze|ik ben"
    r"|мо[йяеи]|наш\w*|меня зовут)\b"
    r"|我的|我们的|我們的|我是|我叫|私の|私は|僕の|제 |저는|나의|우리",
    _I,
)
"""By which people tell of themselves: what they say so is asked for later, and is not guessed."""
PAIR = re.compile(r"^[-*\s]{0,6}([^\W\d][\w .-]{1,40}?)\s{0,3}[=:：]\s{0,3}(\S[^\n]{0,80})$")
NUMBER = re.compile(r"\d[\d.,:/%-]{0,20}")
NAME = re.compile(r"(?<=[\w,;:] )[A-Z][\w-]{2,30}(?![!?.,]?$)")
#: Not at a sentence's start, where every word is capital, nor at its end, where people are called.
END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")
TAKEN_BACK = re.compile(
    r"\b(?:forget|ignore|disregard|drop|lift|scrap|cancel|revoke|undo|remove|never ?mind|no longer"
    r"|any ?more|instead|you (?:can|may)|(?:is|are) (?:allowed|fine|ok(?:ay)?)|again|from now on"
    r"|(?:don['’]?t|do not|needn['’]?t|no) (?:have|need)|does(?:n['’]t| not) apply|changed my mind"
    r"|that rule|this rule|rule \w+ is"
    r"|vergiss|vergessen sie|ignorier\w*|nicht mehr|darfst|dürfen|kannst|können sie|wieder"
    r"|stattdessen|gilt nicht|aufgehoben|oublie[rz]?|n['’e] ?\w* plus|annule[rz]?|tu peux"
    r"|vous pouvez|(?:à|de) nouveau|désormais|plutôt|olvid[ae]\w*|ya no|pued(?:es|e|en)"
    r"|de nuevo|otra vez|en (?:vez|lugar) de|esque[cç][ae]\w*|já não|não \w+ mais|pode[ms]?"
    r"|de novo|em vez de|dimentica\w*|non \w+ più|puoi|può|di nuovo|invece|vergeet|negeer"
    r"|niet meer|je mag|je kunt|u mag|weer|voortaan|забудь\w*|больше не|можно|можешь|можете"
    r"|снова|отмен\w+|вместо)\b"
    r"|忘|忽略|取消|撤[销回]|不用|不再|不必|可以|改[为用]|やめ|取り消|もう|てもいい|代わり|잊|취소|이제|해도|대신",
    _I,
)
"""By which a user ends a rule, or puts another in its place."""
EMPTY_WORDS = frozenset(
    re.findall(
        r"\w+",
        "the and for with from that this you your not don always never must should only please are "
        "was its have has will can may all any der die das und mit von nicht immer nie les des une "
        "pas que los las una",
    )
)
SHORT_MESSAGE = 200
#: Characters: a message that says little else need not name the rule that it ends.
LONGEST_RULE = 400
#: Characters of a constraint at most; it is the user's own words.
WINDOW = 4000
#: Characters of a line looked at together.


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


def takes_back(message: str, rule: str) -> bool:
    """Whether a user's message may end a rule: it says so, or rules otherwise, about the same.

    A rule that stands too long is lifted by a person with one click; one that is gone is missed
    by nobody until it is broken. So in doubt it stands.
    """
    same = bool(stems(message) & stems(rule))
    if TAKEN_BACK.search(message):
        return same or len(message) <= SHORT_MESSAGE
    return same and bool(STRONG_RULE.search(message) or WEAK_RULE.search(message))


def stems(text: str) -> frozenset[str]:
    """The beginnings of the words that say something; pairs of characters where none are apart."""
    found: set[str] = set()
    for word in re.findall(r"[^\W_]+", text.casefold()):
        if word.isascii() or len(word) < 3 or word[0] < "\u2e80":
            if (len(word) > 2 or word.isdigit()) and word not in EMPTY_WORDS:
                found.add(word[:5])
        else:
            found.update(word[at : at + 2] for at in range(len(word) - 1))
    return frozenset(found)


def prose_lines(text: str) -> Iterator[str]:
    """The lines of a message's prose, code and console output left out, long ones in parts."""
    fenced = False
    for line in text.split("\n"):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and line.strip():
            for start in range(0, len(line), WINDOW):
                yield line[start : start + WINDOW]


TALK_STEMS = stems(
    "they them their user users assistant assistants model speaker conversation "
    "conversations chat  discussion discussed discuss talk talked talking speak spoke say "
    "said says tell told ask asked  asks answer answered answers question questions request "
    "requested respond response reply topic  topics subject subjects thing things matter "
    "matters issue issues various several many some few  different multiple about into "
    "other others more most also then further general overall summary  context information "
    "detail details detailed important relevant helpful useful provide provided  continue "
    "continued exchange exchanged interaction message messages something anything everyone "
    "nothing going with good well very there here what which when where who how why were "
    "been being  had did does done make made work progress share shared  nutzer benutzer "
    "assistent gespräch sprachen gesprochen fragen fragte antwort antwortete thema  themen "
    "verschiedene wichtige utilisateur conversation parlé discuté question réponse sujets "
    "divers usuario asistente conversación hablaron pregunta respuesta temas varios utente "
    "conversazione gebruiker gesprek пользователь ассистент разговор вопрос ответ"
)
"""By which any talk at all can be told: a summary made of these says nothing of this one."""


def telling(text: str) -> frozenset[str]:
    """The words that say something, by their beginnings; numbers are facts, not words."""
    return frozenset(
        one for one in stems(text) - TALK_STEMS if not any(character.isdigit() for character in one)
    )
