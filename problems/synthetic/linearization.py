"""Word order: one clause record, written out in English and in German.

The record keeps what both languages share, field by field; English and German
differ in the order in which they read the fields. The German side follows the
topological fields: front field, finite verb, middle field, right bracket, after
field. Every fragment carries its leading space or is empty.
"""

from __future__ import annotations

from dataclasses import dataclass

from .english import verb_group
from .german import THIRD, verb_brackets, zu_infinitive
from .verbs import Verb


@dataclass(slots=True)
class Clause:
    """A clause before its words are put in order.

    Attributes:
        verb: the verb.
        tense: see `german.verb_brackets`.
        agreement: of the subject.
        negated: whether English negates the verb.
        nicht: whether German says nicht (it does not where kein is said).
        closed: whether the English clause ends in a relative or other clause, so
            that nothing more may be put behind it.
        subject: English tree; the fields down to `tail` likewise.
        adverb: of frequency, before the main verb.
        objects: objects, particle and predicate, in order.
        manner: manner and company.
        place: place.
        time: time.
        tail: a clause that depends on the verb.
        subject_de: German words; the fields below likewise.
        pronouns_de: pronoun objects, first in the middle field.
        time_de: time.
        definite_de: definite objects, before adverb and nicht.
        adverb_de: of frequency.
        indefinite_de: indefinite objects.
        manner_de: manner and company.
        place_de: place.
        predicate_de: predicate, direction or prepositional object.
        after_de: clauses behind the right bracket.
    """

    verb: Verb
    tense: str
    agreement: int = THIRD
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


def english_predicate(clause: Clause) -> str:
    """Returns the verb phrase of a statement."""
    group = verb_group(
        clause.verb.english, clause.tense, clause.agreement, clause.negated
    )
    no = " (RB not)" if clause.negated else ""
    return (
        f" (VP{group.auxiliary}{no}{clause.adverb}{group.core}"
        f"{_complements(clause)}{')' * group.closers})"
    )


def english_statement(clause: Clause) -> str:
    """Returns "(S subject verb-phrase)" without punctuation."""
    return f"(S{clause.subject}{english_predicate(clause)})"


def english_question(clause: Clause) -> str:
    """Returns auxiliary, subject and verb phrase, the inside of an (SQ ...)."""
    group = verb_group(clause.verb.english, clause.tense, clause.agreement, True)
    no = " (RB not)" if clause.negated else ""
    return (
        f"{group.auxiliary}{clause.subject}{no}{clause.adverb}{group.core}"
        f"{_complements(clause)}{')' * group.closers}"
    )


def english_infinitive(clause: Clause) -> str:
    """Returns the tree of "to buy a book"."""
    verb = f"(VB {clause.verb.english.base}){_complements(clause)}"
    return f" (S (VP (TO to) (VP {verb})))"


def _brackets(clause: Clause) -> tuple[str, str, str]:
    tense = clause.tense
    if tense == "must" and clause.negated:
        tense = "must not"
    return verb_brackets(clause.verb.german, tense, clause.agreement)


def _middle(clause: Clause) -> str:
    c = clause
    no = " nicht" if c.nicht else ""
    return (
        f"{c.pronouns_de}{c.time_de}{c.definite_de}{c.adverb_de}{no}{c.indefinite_de}"
        f"{c.manner_de}{c.place_de}{c.predicate_de}"
    )


def german_statement(clause: Clause, front: str = "") -> str:
    """Writes a main clause, the verb second.

    Args:
        clause: the clause.
        front: what takes the front field; the subject where empty.
    """
    first, second = (front, clause.subject_de) if front else (clause.subject_de, "")
    finite, right, _ = _brackets(clause)
    right = f" {right}" if right else ""
    return f"{first} {finite}{second}{_middle(clause)}{right}{clause.after_de}"


def german_question(clause: Clause) -> str:
    """Writes a clause with the verb first."""
    finite, right, _ = _brackets(clause)
    right = f" {right}" if right else ""
    return f" {finite}{clause.subject_de}{_middle(clause)}{right}{clause.after_de}"


def german_subordinate(clause: Clause) -> str:
    """Writes a clause with the verb last."""
    final = _brackets(clause)[2]
    return f"{clause.subject_de}{_middle(clause)} {final}{clause.after_de}"


def german_infinitive(clause: Clause) -> str:
    """Writes "ein Buch zu kaufen", without the subject."""
    return f"{_middle(clause)} {zu_infinitive(clause.verb.german)}{clause.after_de}"
