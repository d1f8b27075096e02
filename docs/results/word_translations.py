"""Which English words a German word of the grammar can translate.

The lexicon gives every English word one German counterpart, so a table of inflected
forms is complete. Keys and values are in lower case and without punctuation.
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator

from t2t_repro.features.synthetic import lexicon, phrases
from t2t_repro.features.synthetic.english import cardinal_tree, leaves
from t2t_repro.features.synthetic.german import (
    HABEN,
    MODALS,
    SEIN,
    Case,
    Noun,
    cardinal,
    compound,
    noun_form,
    past_forms,
    zu_infinitive,
)
from t2t_repro.features.synthetic.lexicon import BE, VERBS, Verb
from t2t_repro.features.synthetic.tenses import Tense

# The words of one language that one word of the other translates, in order.
Words = tuple[str, ...]

_ENDINGS = ("", "e", "er", "es", "en", "em")
_DETERMINERS = (
    "my:mein your:dein his:sein her:ihr our:unser their:ihr this:dies these:dies "
    "every:jed all:all both:beid many:viel some:einig no:kein a:ein an:ein a:kein "
    "an:kein not:kein which:welch"
)
_ARTICLES = "der die das den dem des"
_RELATIVES = "der die das den dem denen dessen deren"
_OTHERS = (
    "i:ich me:mich me:mir you:du you:dich you:dir he:er him:ihn him:ihm she:sie "
    "her:sie her:ihr we:wir us:uns they:sie them:sie them:ihnen "
    "it:er it:sie it:es it:ihn it:ihm "
    "because:weil although:obwohl while:während before:bevor when:als when:wenn "
    "when:wann if:wenn that:dass whether:ob and:und but:aber than:als not:nicht "
    "cannot:nicht who:wer whom:wen whom:wem what:was where:wo why:warum "
    "with:mit without:ohne for:für from:aus by:von in:in in:im in:am on:auf on:am "
    "behind:hinter near:bei into:in onto:auf to:zu at:um "
    "week:woche year:jahr last:letzte last:letztes next:nächste next:nächstes "
    "today:heute now:jetzt yesterday:gestern tomorrow:morgen old:alt years:jahre "
    "euros:euro o'clock:uhr one:ein"
)
# Merged with an article, or two English words for one German word.
_MERGED = (
    ("im", "in the"),
    ("ins", "into the"),
    ("zum", "to the"),
    ("zur", "to the"),
    ("vom", "by the"),
    ("vom", "of the"),
    ("beim", "near the"),
    ("am", "in the"),
    ("vor", "in front of"),
    ("um", "in order"),
    ("des", "of the"),
    ("der", "of the"),
)
_MODAL_WORDS = {
    Tense.CAN: ("can", "cannot"),
    Tense.MUST: ("must",),
    Tense.MUST_NOT: ("must",),
    Tense.WILL: ("will",),
    Tense.SHOULD: ("should",),
    Tense.COULD: ("could",),
    Tense.WANT: ("want to", "wants to"),
    Tense.WANTED: ("want to", "wanted to"),
    Tense.HAD_TO: ("have to", "had to"),
}
_AUXILIARIES = frozenset(
    {
        *HABEN,
        *SEIN,
        *MODALS[Tense.WILL],
        *past_forms("wurde"),
        *past_forms("hatte"),
        *past_forms("war"),
        *("worden", "haben", "sein", "zu"),
    }
)


def _verb_forms(verb: Verb) -> Iterator[str]:
    german = verb.german
    finite = (*german.present, *(german.preterite or ()), german.infinitive)
    yield from finite
    yield from (german.prefix + form for form in finite)
    yield german.participle
    yield zu_infinitive(german)


def _english_verb_forms(verb: Verb) -> Words:
    forms = verb.english
    return (forms.base, forms.third, forms.past, forms.participle, forms.gerund)


def _noun_forms(noun: Noun) -> Iterator[tuple[str, str]]:
    for plural, case in itertools.product((False, True), Case):
        english = noun.english_plural if plural else noun.english
        yield noun_form(noun, case, plural), english


def _nouns() -> Iterator[tuple[str, str]]:
    for noun in lexicon.NOUNS:
        yield from _noun_forms(noun)
        for modifier in phrases.modifiers(noun):
            yield from _noun_forms(compound(modifier, noun))


def _adjectives() -> Iterator[tuple[str, str]]:
    for adjective in lexicon.ADJECTIVES:
        yield adjective.german, adjective.english
        yield from ((adjective.stem + e, adjective.english) for e in _ENDINGS)
        yield adjective.german_comparative, adjective.english_comparative


def _numbers() -> Iterator[tuple[str, str]]:
    for number in range(1, 1000):
        yield cardinal(number), " ".join(leaves(cardinal_tree(number)))


def _adverbs() -> Iterator[tuple[str, str]]:
    for pair in (*phrases.FREQUENCY, *phrases.MANNER):
        yield pair.german, leaves(pair.english)[0]
    for pair in (*phrases.DAYS, *phrases.MONTHS, *phrases.PARTS_OF_DAY):
        yield pair.german, pair.english


def _verbs() -> Iterator[tuple[str, str]]:
    for verb in VERBS:
        for german in _verb_forms(verb):
            # "zu kaufen" is two words; "haben" is an auxiliary, too.
            word = german.split()[-1]
            if word not in _AUXILIARIES:
                yield from ((word, english) for english in _english_verb_forms(verb))
        if verb.german_preposition:
            yield verb.german_preposition, verb.preposition


def _function_words() -> Iterator[tuple[str, str]]:
    for entry in _DETERMINERS.split():
        english, _, lemma = entry.partition(":")
        yield from ((lemma + ending, english) for ending in _ENDINGS)
    yield from ((german, "the") for german in _ARTICLES.split())
    for german in _RELATIVES.split():
        yield from ((german, english) for english in ("who", "whom", "that", "which"))
    yield from ((german, "whose") for german in ("dessen", "deren"))
    for entry in _OTHERS.split():
        english, _, german = entry.partition(":")
        yield german, english
    yield from _MERGED


def _modals() -> Iterator[tuple[str, str]]:
    for tense, english in _MODAL_WORDS.items():
        yield from itertools.product(MODALS[tense], english)
    yield "werden", "be"


@functools.cache
def translations() -> dict[str, frozenset[Words]]:
    """Return, per German word, the English words that it can translate.

    A German word that translates several English words at once, such as a compound,
    has a tuple of them.
    """
    table: defaultdict[str, set[Words]] = defaultdict(set)
    entries: Iterable[tuple[str, str]] = itertools.chain(
        _nouns(),
        _adjectives(),
        _numbers(),
        _adverbs(),
        _verbs(),
        _function_words(),
        _modals(),
    )
    for german, english in entries:
        if german and english:
            table[german.lower()].add(tuple(english.lower().split()))
    return {german: frozenset(words) for german, words in table.items()}


@functools.cache
def german_verb_words() -> frozenset[str]:
    """Return every form of a verb or auxiliary, separable prefixes and "zu"."""
    lexical = {
        word
        for verb in (*VERBS, BE)
        for form in (*_verb_forms(verb), verb.german.prefix)
        for word in form.split()
    }
    modals = {form for forms in MODALS.values() for form in forms}
    infinitives = {"können", "müssen", "wollen", "werden"}
    return frozenset(
        word.lower() for word in lexical | modals | infinitives | _AUXILIARIES
    )
