"""The verbs of the grammar, in both languages, with their complements.

Verbs whose forms have two readings are left out. If only the simple past has two
readings ("read"), the verb has no simple past here.
"""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass, replace

from t2t_repro.features.synthetic.english import EnglishVerb, verb_forms
from t2t_repro.features.synthetic.german import (
    HABEN,
    SEIN,
    Case,
    GermanVerb,
    participle,
    past_forms,
    present_forms,
)
from t2t_repro.features.synthetic.word_traits import (
    NO_TRAITS,
    PEOPLE,
    Trait,
    parse_traits,
    table_rows,
)


class Frame(enum.Enum):
    """The complements that a verb needs."""

    INTRANSITIVE = enum.auto()
    ACCUSATIVE = enum.auto()
    DATIVE = enum.auto()
    DITRANSITIVE = enum.auto()
    PREPOSITIONAL = enum.auto()
    MOTION = enum.auto()  # a direction
    THAT = enum.auto()  # a clause with "that"
    WHETHER = enum.auto()  # a clause with "whether"
    CONTROL = enum.auto()  # an infinitive
    COPULA = enum.auto()
    PRICE = enum.auto()


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb in both languages.

    Attributes:
        english: Its English forms.
        german: Its German forms.
        frame: Its complements.
        subjects: Nouns with any of these traits can be its subject.
        objects: Nouns with any of these traits can be its object.
        preposition: English preposition of the complement, or "".
        german_preposition: German preposition of a prepositional frame, or "".
        german_case: The case that `german_preposition` governs.
        stative: Whether it has no progressive forms and no adverbs of manner.
        only_simple: Whether it is used in the simple tenses only.
        no_past: Whether its simple past equals another English form.
    """

    english: EnglishVerb
    german: GermanVerb
    frame: Frame
    subjects: Trait
    objects: Trait = NO_TRAITS
    preposition: str = ""
    german_preposition: str = ""
    german_case: Case = Case.ACCUSATIVE
    stative: bool = False
    only_simple: bool = False
    no_past: bool = False


_PARTICLES = {
    "up": " (PRT (RP up))",
    "on": " (PRT (RP on))",
    "away": " (PRT (RP away))",
    "back": " (ADVP (RB back))",
    "along": " (ADVP (RB along))",
    "asleep": " (ADJP (JJ asleep))",
}
# The case that a preposition of these verbs governs.
_GOVERNED_CASES = {"auf": Case.ACCUSATIVE, "über": Case.ACCUSATIVE, "von": Case.DATIVE}

# English base[/past[/participle]][+particle][>preposition]; German
# prefix+infinitive[/changed stem of du and er]; participle, or - if it is regular;
# auxiliary and flags; traits of subjects; traits of objects, or German
# preposition:traits of objects.
_FRAMES = {
    Frame.INTRANSITIVE: """
sleep/slept schlafen/schläf geschlafen haben people,animal
work arbeiten - haben people
dance tanzen - haben people
sing/sang/sung singen gesungen haben people
swim/swam/swum schwimmen geschwommen sein people,animal
arrive an+kommen angekommen sein people
wake/woke/woken+up auf+wachen - sein people,animal
get/got/got+up auf+stehen aufgestanden sein people
fall/fell/fallen+asleep ein+schlafen/schläf eingeschlafen sein people,animal
come/came/come+back zurück+kommen zurückgekommen sein people,animal
""",
    Frame.ACCUSATIVE: """
see/saw/seen sehen/sieh gesehen haben,stative people,animal people,animal,thing,place
buy/bought kaufen - haben people thing,food
sell/sold verkaufen - haben people thing,food
find/found finden gefunden haben people,animal people,animal,thing
carry tragen/träg getragen haben people thing,food
read lesen/lies gelesen haben,no_past people readable
eat/ate/eaten essen/iss gegessen haben people,animal food
wash waschen/wäsch gewaschen haben people washable
open auf+machen - haben people openable
close zu+machen - haben people openable
pick+up ab+holen - haben people people,thing
call an+rufen angerufen haben people people
invite ein+laden/läd eingeladen haben people people
visit besuchen - haben people people,visitable
know/knew/known kennen gekannt haben,stative,simple people people
love lieben - haben,stative,simple people people,animal
look>for suchen - haben people,animal people,animal,thing
repair reparieren - haben people repairable
throw/threw/thrown+away weg+werfen/wirf weggeworfen haben people thing
bring/brought+along mit+bringen mitgebracht haben people thing,food
put+on an+ziehen angezogen haben,no_past people clothing
clean+up auf+räumen - haben people interior
have/had haben - haben,stative,simple people thing,animal
""",
    Frame.DATIVE: """
help helfen/hilf geholfen haben people people
thank danken - haben people people
follow folgen - sein people,animal people,animal
answer antworten - haben people people
listen>to zu+hören - haben people people
""",
    Frame.DITRANSITIVE: """
give/gave/given geben/gib gegeben haben people thing,food
show/showed/shown zeigen - haben people thing
send/sent schicken - haben people thing
lend/lent leihen geliehen haben people thing
""",
    Frame.PREPOSITIONAL: """
wait>for warten - haben people,animal auf:people,animal
dream>of träumen - haben people von:people,animal,thing,place
talk>about sprechen/sprich gesprochen haben people über:people,animal,thing,place
think/thought>about nach+denken nachgedacht haben people über:people,animal,thing,place
""",
    Frame.MOTION: """
go/went/gone gehen gegangen sein people
drive/drove/driven fahren/fähr gefahren sein people
run/ran/run laufen/läuf gelaufen sein people,animal
""",
    Frame.THAT: """
say/said sagen - haben,stative people
know/knew/known wissen gewusst haben,stative,simple people
believe glauben - haben,stative,simple people
hope hoffen - haben,stative,simple people
""",
    Frame.WHETHER: """
ask fragen - haben,stative people
""",
    Frame.CONTROL: """
try versuchen - haben,stative people
promise versprechen/versprich versprochen haben,stative people
forget/forgot/forgotten vergessen/vergiss vergessen haben,stative people
""",
}


def _english_verb(text: str) -> tuple[EnglishVerb, str]:
    """Parse the English column: the forms, and the preposition or ""."""
    text, _, preposition = text.partition(">")
    text, _, particle = text.partition("+")
    base, past, third_form = (text + "//").split("/")[:3]
    forms = verb_forms(base, past, third_form)
    if base in ("read", "put"):
        forms = replace(forms, participle=base)
    return replace(forms, particle=_PARTICLES.get(particle, "")), preposition


def _german_verb(
    text: str, past_participle: str, auxiliary: tuple[str, ...]
) -> GermanVerb:
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
    return GermanVerb(
        prefix, infinitive, present, past_participle, auxiliary, preterite
    )


def _verb(frame: Frame, row: list[str]) -> Verb:
    english_column, german_column, past_participle, flag_column, subjects = row[:5]
    objects = row[5] if len(row) > 5 else ""
    english, preposition = _english_verb(english_column)
    auxiliary, *flags = flag_column.split(",")
    german_preposition, _, objects = objects.rpartition(":")
    return Verb(
        english=english,
        german=_german_verb(
            german_column, past_participle, SEIN if auxiliary == "sein" else HABEN
        ),
        frame=frame,
        subjects=parse_traits(subjects),
        objects=parse_traits(objects),
        preposition=preposition,
        german_preposition=german_preposition,
        german_case=_GOVERNED_CASES.get(german_preposition, Case.ACCUSATIVE),
        stative="stative" in flags,
        only_simple="simple" in flags,
        no_past="no_past" in flags,
    )


VERBS = tuple(
    _verb(frame, row) for frame, table in _FRAMES.items() for row in table_rows(table)
)
BE = Verb(
    english=EnglishVerb("be", "is", "was", "been", "being"),
    german=GermanVerb("", "sein", SEIN, "gewesen", SEIN, past_forms("war")),
    frame=Frame.COPULA,
    subjects=PEOPLE | Trait.ANIMAL | Trait.THING | Trait.FOOD | Trait.PLACE,
    stative=True,
    only_simple=True,
)
COST = Verb(
    english=verb_forms("cost", "cost"),
    german=GermanVerb("", "kosten", present_forms("kosten"), "gekostet", HABEN),
    frame=Frame.PRICE,
    subjects=Trait.THING,
    stative=True,
    only_simple=True,
    no_past=True,
)


@functools.cache
def find_verbs(
    frame: Frame, subjects: Trait, objects: Trait = NO_TRAITS
) -> tuple[Verb, ...]:
    """Return the verbs of a frame for nouns with any of these traits.

    Args:
        frame: The complements.
        subjects: Traits of the subject.
        objects: Traits of the object; without traits, every verb qualifies.
    """
    return tuple(
        verb
        for verb in VERBS
        if verb.frame is frame
        and verb.subjects & subjects
        and (not objects or verb.objects & objects)
    )
