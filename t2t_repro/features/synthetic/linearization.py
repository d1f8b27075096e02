"""Word order: a clause, written in English and in German.

`Clause` keeps the parts of a clause; English and German read them in different orders.
The German side follows the topological fields: front field, finite verb, middle field,
right bracket, after field. Every part carries its leading space or is empty.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2t_repro.features.synthetic.english import VerbGroup, verb_group
from t2t_repro.features.synthetic.german import (
    Agreement,
    VerbBrackets,
    verb_brackets,
    zu_infinitive,
)
from t2t_repro.features.synthetic.tenses import Tense
from t2t_repro.features.synthetic.verbs import Verb


@dataclass(slots=True)
class Clause:
    """A clause before its words are put in order.

    The English parts are trees, the German ones (`*_de`) are words.

    Attributes:
        verb: The verb.
        tense: Its tense.
        agreement: Person and number of the subject.
        negated: Whether English negates the verb.
        nicht: Whether German has nicht; with kein it does not.
        closed: Whether the English clause ends in a relative or other clause, so
            that nothing can follow.
        subject: The subject.
        adverb: Adverb of frequency, before the main verb.
        objects: Objects, particle and predicate, in order.
        manner: Manner and company.
        place: Place.
        time: Time.
        tail: A clause that depends on the verb.
        subject_de: The subject.
        pronouns_de: Pronoun objects, first in the middle field.
        time_de: Time.
        definite_de: Definite objects, before adverb and nicht.
        adverb_de: Adverb of frequency.
        indefinite_de: Indefinite objects.
        manner_de: Manner and company.
        place_de: Place.
        predicate_de: Predicate, direction or prepositional object.
        after_de: Clauses after the right bracket.
    """

    verb: Verb
    tense: Tense
    agreement: Agreement = Agreement.THIRD
    negated: bool = False
    nicht: bool = False
    closed: bool = False
    subject: str = ""
    adverb: str = ""
    objects: str = ""
    manner: str = ""
    place: str = ""
    time: str = ""
    tail: str = ""
    subject_de: str = ""
    pronouns_de: str = ""
    time_de: str = ""
    definite_de: str = ""
    adverb_de: str = ""
    indefinite_de: str = ""
    manner_de: str = ""
    place_de: str = ""
    predicate_de: str = ""
    after_de: str = ""


def _complements(clause: Clause) -> str:
    c = clause
    return f"{c.objects}{c.manner}{c.place}{c.time}{c.tail}"


def _verb_group(clause: Clause, *, support: bool) -> VerbGroup:
    return verb_group(clause.verb.english, clause.tense, clause.agreement, support)


def _core(clause: Clause, group: VerbGroup) -> str:
    """Return the main verb, after the auxiliary, and all that follows it."""
    return (
        f"{' (RB not)' if clause.negated else ''}{clause.adverb}{group.core}"
        f"{_complements(clause)}{')' * group.closers}"
    )


def english_predicate(clause: Clause) -> str:
    """Return the verb phrase of a statement."""
    group = _verb_group(clause, support=clause.negated)
    return f" (VP{group.auxiliary}{_core(clause, group)})"


def english_statement(clause: Clause) -> str:
    """Return "(S subject verb-phrase)" without punctuation."""
    return f"(S{clause.subject}{english_predicate(clause)})"


def english_question(clause: Clause) -> str:
    """Return auxiliary, subject and verb phrase: the children of an (SQ ...)."""
    group = _verb_group(clause, support=True)
    return f"{group.auxiliary}{clause.subject}{_core(clause, group)}"


def english_infinitive(clause: Clause) -> str:
    """Return the tree of "to buy a book"."""
    verb = f"(VB {clause.verb.english.base}){_complements(clause)}"
    return f" (S (VP (TO to) (VP {verb})))"


def _brackets(clause: Clause) -> VerbBrackets:
    tense = clause.tense
    if tense is Tense.MUST and clause.negated:
        tense = Tense.MUST_NOT
    return verb_brackets(clause.verb.german, tense, clause.agreement)


def _middle(clause: Clause) -> str:
    c = clause
    no = " nicht" if c.nicht else ""
    return (
        f"{c.pronouns_de}{c.time_de}{c.definite_de}{c.adverb_de}{no}{c.indefinite_de}"
        f"{c.manner_de}{c.place_de}{c.predicate_de}"
    )


def _from_finite_verb(clause: Clause, subject: str) -> str:
    """Return the finite verb of a main clause and all that follows it."""
    brackets = _brackets(clause)
    right = f" {brackets.right}" if brackets.right else ""
    return f" {brackets.finite}{subject}{_middle(clause)}{right}{clause.after_de}"


def german_statement(clause: Clause, front: str = "") -> str:
    """Return a main clause with the verb in second place.

    Args:
        clause: The clause.
        front: The words of the front field; the subject if empty.
    """
    if front:
        return f"{front}{_from_finite_verb(clause, clause.subject_de)}"
    return f"{clause.subject_de}{_from_finite_verb(clause, '')}"


def german_question(clause: Clause) -> str:
    """Return a clause with the verb first."""
    return _from_finite_verb(clause, clause.subject_de)


def german_subordinate(clause: Clause) -> str:
    """Return a clause with the verb last."""
    last = _brackets(clause).last
    return f"{clause.subject_de}{_middle(clause)} {last}{clause.after_de}"


def german_infinitive(clause: Clause) -> str:
    """Return "ein Buch zu kaufen", without the subject."""
    return f"{_middle(clause)} {zu_infinitive(clause.verb.german)}{clause.after_de}"
