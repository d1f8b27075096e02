"""The verbs of the synthetic grammar, in both languages, and what they go with.

Left out are verbs whose forms have two readings; where only the simple past has
(read), that form is.
"""

from __future__ import annotations

from typing import NamedTuple

from .english import EnglishVerb, verb_forms
from .german import (
    HABEN,
    SEIN,
    GermanVerb,
    participle,
    past_forms,
    present_forms,
)
from .lexicon import table_rows


class Verb(NamedTuple):
    """A verb on both sides.

    Attributes:
        english: its English forms.
        german: its German forms.
        frame: "intransitive", "accusative", "dative", "ditransitive",
            "prepositional", "motion", "that", "whether", "control", "copula" or
            "price".
        preposition: English preposition of the complement, if any.
        german_preposition: of a prepositional frame.
        german_case: "a" or "d", the case that this preposition governs.
        subjects: noun tags of the possible subjects.
        objects: noun tags of the possible objects.
        stative: whether progressive forms and adverbs of manner are out.
        plain: whether only the simple tenses are in use.
        perfect_only: whether the simple past equals another form in English.
    """

    english: EnglishVerb
    german: GermanVerb
    frame: str
    preposition: str
    german_preposition: str
    german_case: str
    subjects: str
    objects: str
    stative: bool
    plain: bool
    perfect_only: bool


_PARTICLES = {
    "up": " (PRT (RP up))",
    "on": " (PRT (RP on))",
    "away": " (PRT (RP away))",
    "back": " (ADVP (RB back))",
    "along": " (ADVP (RB along))",
    "asleep": " (ADJP (JJ asleep))",
}
_PEOPLE = "hqx"

# English base[/past[/participle]][+particle][>preposition]; German
# prefix+infinitive[/changed stem of du and er]; participle or - where regular;
# auxiliary h or s, then flags (S stative, P plain, N no simple past); subjects;
# objects or German preposition:case:objects.
_FRAMES = {
    "intransitive": """
sleep/slept schlafen/schläf geschlafen h people,a|work arbeiten - h people
dance tanzen - h people|sing/sang/sung singen gesungen h people
swim/swam/swum schwimmen geschwommen s people,a|arrive an+kommen angekommen s people
wake/woke/woken+up auf+wachen - s people,a
get/got/got+up auf+stehen aufgestanden s people
fall/fell/fallen+asleep ein+schlafen/schläf eingeschlafen s people,a
come/came/come+back zurück+kommen zurückgekommen s people,a
""",
    "accusative": """
see/saw/seen sehen/sieh gesehen hS people,a people,a,t,l
buy/bought kaufen - h people t,f|sell/sold verkaufen - h people t,f
find/found finden gefunden h people,a people,a,t
carry tragen/träg getragen h people t,f|read lesen/lies gelesen hN people r
eat/ate/eaten essen/iss gegessen h people,a f
wash waschen/wäsch gewaschen h people w|open auf+machen - h people o
close zu+machen - h people o|pick+up ab+holen - h people people,t
call an+rufen angerufen h people people
invite ein+laden/läd eingeladen h people people|visit besuchen - h people people,v
know/knew/known kennen gekannt hSP people people|love lieben - hSP people people,a
look>for suchen - h people,a people,a,t|repair reparieren - h people m
throw/threw/thrown+away weg+werfen/wirf weggeworfen h people t
bring/brought+along mit+bringen mitgebracht h people t,f
put+on an+ziehen angezogen hN people b|clean+up auf+räumen - h people i
have/had haben - hSP people t,a
""",
    "dative": """
help helfen/hilf geholfen h people people|thank danken - h people people
follow folgen - s people,a people,a|answer antworten - h people people
listen>to zu+hören - h people people
""",
    "ditransitive": """
give/gave/given geben/gib gegeben h people t,f|show/showed/shown zeigen - h people t
send/sent schicken - h people t|lend/lent leihen geliehen h people t
""",
    "prepositional": """
wait>for warten - h people,a auf:a:people,a
dream>of träumen - h people von:d:people,a,t,l
talk>about sprechen/sprich gesprochen h people über:a:people,a,t,l
think/thought>about nach+denken nachgedacht h people über:a:people,a,t,l
""",
    "motion": """
go/went/gone gehen gegangen s people
drive/drove/driven fahren/fähr gefahren s people
run/ran/run laufen/läuf gelaufen s people,a
""",
    "that": """
say/said sagen - hS people|know/knew/known wissen gewusst hSP people
believe glauben - hSP people|hope hoffen - hSP people
""",
    "whether": "ask fragen - hS people",
    "control": """
try versuchen - hS people|promise versprechen/versprich versprochen hS people
forget/forgot/forgotten vergessen/vergiss vergessen hS people
""",
}


def _english_verb(text: str) -> tuple[EnglishVerb, str]:
    text, _, preposition = text.partition(">")
    text, _, particle = text.partition("+")
    base, past, third_form = (text + "//").split("/")[:3]
    forms = verb_forms(base, past, third_form)
    if base in ("read", "put"):
        forms = forms._replace(participle=base)
    return forms._replace(particle=_PARTICLES.get(particle, "")), preposition


def _german_verb(text: str, past_participle: str, sein: bool) -> GermanVerb:
    prefix, _, rest = text.rpartition("+")
    infinitive, _, changed = rest.partition("/")
    if past_participle == "-":
        past_participle = participle(prefix, infinitive)
    present, preterite = present_forms(infinitive, changed), None
    if infinitive == "wissen":
        present = ("weiß", "weißt", "weiß", "wissen", "wissen")
        preterite = past_forms("wusste")
    if infinitive == "haben":
        present, preterite = HABEN, past_forms("hatte")
    auxiliary = SEIN if sein else HABEN
    return GermanVerb(
        prefix, infinitive, present, past_participle, auxiliary, preterite
    )


def _tags(text: str) -> str:
    return text.replace("people", _PEOPLE).replace(",", "")


def _verb(frame: str, row: list[str]) -> Verb:
    english, preposition = _english_verb(row[0])
    german = _german_verb(row[1], row[2], row[3][0] == "s")
    flags = row[3][1:]
    subjects, objects = [*row[4:], ""][:2]
    german_preposition, german_case = "", "d" if frame == "dative" else "a"
    if frame == "prepositional":
        german_preposition, german_case, objects = objects.split(":")
    return Verb(
        english,
        german,
        frame,
        preposition,
        german_preposition,
        german_case,
        _tags(subjects),
        _tags(objects),
        "S" in flags,
        "P" in flags,
        "N" in flags,
    )


VERBS = tuple(
    _verb(frame, row) for frame, table in _FRAMES.items() for row in table_rows(table)
)
BE = Verb(
    EnglishVerb("be", "is", "was", "been", "being"),
    GermanVerb("", "sein", SEIN, "gewesen", SEIN, past_forms("war")),
    *("copula", "", "", "a", "hqxatfl", ""),
    *(True, True, False),
)
COST = Verb(
    verb_forms("cost", "cost"),
    GermanVerb("", "kosten", present_forms("kosten"), "gekostet", HABEN),
    *("price", "", "", "a", "t", ""),
    *(True, True, True),
)
