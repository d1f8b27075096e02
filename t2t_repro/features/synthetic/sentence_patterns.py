"""Statements of one, two or more clauses, and questions."""

from __future__ import annotations

from dataclasses import dataclass

from t2t_repro.features.synthetic import phrases, tenses
from t2t_repro.features.synthetic.clauses import (
    Clause,
    add_adverbials,
    add_complements,
    add_manner,
    add_objectless_verb,
    bare,
    draw_subject,
    draw_verb,
    english_infinitive,
    english_predicate,
    english_question,
    english_statement,
    german_infinitive,
    german_question,
    german_statement,
    german_subordinate,
    start,
)
from t2t_repro.features.synthetic.english import (
    children_of_noun_phrase,
    with_last_child,
)
from t2t_repro.features.synthetic.german import Case
from t2t_repro.features.synthetic.lexicon import Frame, find_verbs
from t2t_repro.features.synthetic.relatives import MAX_DEPTH, draw_clause, relative
from t2t_repro.features.synthetic.tenses import Tense, Tenses
from t2t_repro.features.synthetic.word_traits import PEOPLE, Draw, Pair, Trait

_REASONS = (Pair("because", "weil"), Pair("although", "obwohl"))
_TIMES = (Pair("while", "während"), Pair("before", "bevor"))
_COORDINATORS = (Pair("and", " und"), *(Pair("but", " , aber"),) * 2)


def _statement(clause: Clause) -> Pair:
    tree = with_last_child(english_statement(clause), "(. .)")
    return Pair(tree, f"{german_statement(clause)} .")


def _simple(draw: Draw) -> Pair:
    return _statement(draw_clause(draw, tenses.ANY, MAX_DEPTH))


def _take_front(draw: Draw, clause: Clause) -> Pair:
    """Remove an adverbial from a clause, or draw one, for the front of the clause."""
    if clause.place and draw.chance(0.6):
        front = Pair(clause.place, clause.place_de)
        clause.place = clause.place_de = ""
        return front
    if not clause.time:
        time = phrases.time_adverbial(draw, clause.tense)
        return Pair(f" {time.english}", f" {time.german}")
    front = Pair(clause.time, clause.time_de)
    clause.time = clause.time_de = ""
    return front


def _front(clause: Clause, front: Pair) -> Pair:
    """Write a statement with an adverbial before its subject."""
    comma = " (, ,)" if front.english.startswith(" (PP") else ""
    predicate = english_predicate(clause)
    tree = f"(S{front.english}{comma}{clause.subject}{predicate} (. .))"
    return Pair(tree, f"{german_statement(clause, front.german)} .")


def _fronted_adverbial(draw: Draw) -> Pair:
    clause = draw_clause(draw, tenses.ANY, MAX_DEPTH)
    return _front(clause, _take_front(draw, clause))


def _fronted_object(draw: Draw) -> Pair:
    verb = draw.pick(find_verbs(Frame.ACCUSATIVE, PEOPLE))
    clause = start(draw, verb, tenses.ANY)
    topic = phrases.noun_phrase(
        draw, verb.objects, Case.ACCUSATIVE, phrases.DEMONSTRATIVE
    )
    draw_subject(draw, clause, PEOPLE)
    add_objectless_verb(clause)
    add_adverbials(draw, clause)
    subject, predicate = clause.subject, english_predicate(clause)
    tree = f"(S {topic.tree} (, ,){subject}{predicate} (. .))"
    return Pair(tree, f"{german_statement(clause, topic.german)} .")


@dataclass(frozen=True, slots=True)
class Link:
    """A subordinating conjunction.

    Attributes:
        words: The conjunction in both languages.
        past: Whether it links clauses in the past.
    """

    words: Pair
    past: bool

    @property
    def main(self) -> Tenses:
        """Tenses of the main clause."""
        return tenses.PAST if self.past else tenses.PRESENT

    @property
    def subordinate(self) -> Tenses:
        """Tenses of the subordinate clause: no "when he will come"."""
        if self.past:
            return tenses.PAST
        return tenses.PRESENT if self.words in _REASONS else tenses.NOW


def draw_link(draw: Draw) -> Link:
    """Draw a conjunction and whether it links clauses in the past."""
    past = draw.chance(0.5)
    return Link(_conjunction(draw, past), past)


def _conjunction(draw: Draw, past: bool) -> Pair:
    """Draw a conjunction; "when" is als for the past and wenn otherwise."""
    if draw.chance(0.5):
        return draw.pick(_REASONS)
    if draw.chance(0.5):
        return draw.pick(_TIMES)
    if past:
        return Pair("when", "als")
    return draw.pick((Pair("when", "wenn"), Pair("if", "wenn")))


def _subordinate(conjunction: Pair, clause: Clause) -> Pair:
    word = conjunction.english
    leaf = "(WHADVP (WRB when))" if word == "when" else f"(IN {word})"
    tree = f"(SBAR {leaf} {english_statement(clause)})"
    return Pair(tree, f"{conjunction.german}{german_subordinate(clause)}")


def main_first(main: Clause, link: Link, other: Clause) -> Pair:
    """Put a subordinate clause after a main clause."""
    clause = _subordinate(link.words, other)
    predicate = with_last_child(english_predicate(main), clause.english)
    tree = f"(S{main.subject}{predicate} (. .))"
    return Pair(tree, f"{german_statement(main)} , {clause.german} .")


def main_last(main: Clause, link: Link, other: Clause) -> Pair:
    """Put a subordinate clause in the front field of a main clause."""
    clause = _subordinate(link.words, other)
    predicate = english_predicate(main)
    tree = f"(S {clause.english} (, ,){main.subject}{predicate} (. .))"
    return Pair(tree, f"{clause.german} ,{german_question(main)} .")


def coordinated(draw: Draw, first: Clause, second: Clause) -> Pair:
    """Join two main clauses with "and" or "but"."""
    word = draw.pick(_COORDINATORS)
    left, right = english_statement(first), english_statement(second)
    tree = f"(S {left} (, ,) (CC {word.english}) {right} (. .))"
    words = f"{german_statement(first)}{word.german}{german_statement(second)} ."
    return Pair(tree, words)


def _subordination(draw: Draw) -> Pair:
    link = draw_link(draw)
    main = draw_clause(draw, link.main, MAX_DEPTH - 1)
    other = draw_clause(draw, link.subordinate, MAX_DEPTH - 2)
    if main.closed or draw.chance(0.35):
        return main_last(main, link, other)
    return main_first(main, link, other)


def _coordination(draw: Draw) -> Pair:
    first = draw_clause(draw, tenses.ANY, MAX_DEPTH - 1)
    second = draw_clause(draw, tenses.ANY, MAX_DEPTH - 2)
    return coordinated(draw, first, second)


def _start_reporting(draw: Draw, frame: Frame, family: Tenses) -> Clause:
    clause = start(draw, draw.pick(find_verbs(frame, PEOPLE)), family)
    draw_subject(draw, clause, PEOPLE)
    return clause


def _complement(draw: Draw) -> Pair:
    """Draw "say that ..." or "ask whether ..."."""
    past = draw.chance(0.5)
    frame, conjunction = Frame.THAT, Pair("that", "dass")
    if draw.chance(0.3):
        frame, conjunction = Frame.WHETHER, Pair("whether", "ob")
    main = _start_reporting(draw, frame, tenses.PAST if past else tenses.PRESENT)
    inner = draw_clause(draw, tenses.PAST if past else tenses.ANY, MAX_DEPTH - 1)
    clause = _subordinate(conjunction, inner)
    main.tail, main.after_de = f" {clause.english}", f" , {clause.german} ,"
    if draw.chance(0.2):
        return _front(main, _take_front(draw, main))
    return _statement(main)


def _infinitive_clause(draw: Draw) -> Clause:
    clause = Clause(draw_verb(draw, PEOPLE), Tense.PRESENT)
    add_complements(draw, clause, relative(draw, 1))
    if not clause.closed and draw.chance(0.25):
        add_manner(clause, draw.pick(phrases.MANNER))
    return clause


def _infinitive(draw: Draw) -> Pair:
    """Draw "try to ..." or "go to the city in order to ..."."""
    inner = _infinitive_clause(draw)
    if draw.chance(0.6):
        main = _start_reporting(draw, Frame.CONTROL, tenses.ANY)
        main.tail = english_infinitive(inner)
        main.after_de = f" ,{german_infinitive(inner)} ,"
        return _statement(main)
    main = start(draw, draw_verb(draw, PEOPLE), tenses.ANY)
    draw_subject(draw, main, PEOPLE)
    add_complements(draw, main, bare)
    main.tail = f" (SBAR (IN in) (NN order){english_infinitive(inner)})"
    main.after_de = f" , um{german_infinitive(inner)} ,"
    return _statement(main)


_WHERE = Pair("Where", "wo")
_ADVERBS = (_WHERE, Pair("When", "wann"), Pair("Why", "warum"))
_WHO = Pair("(WP who)", "wer")
_WHOM_ACCUSATIVE = Pair("(WP whom)", "wen")
_WHOM_DATIVE = Pair("(WP whom)", "wem")
_WHAT = Pair("(WP what)", "was")


def _question(draw: Draw) -> Pair:
    clause = draw_clause(draw, tenses.ANY, 1 if draw.chance(0.4) else 0)
    tree = f"(SQ{english_question(clause)} (. ?))"
    return Pair(tree, f"{german_question(clause)} ?")


def _wh_adverb(draw: Draw) -> Pair:
    word = draw.pick(_ADVERBS)
    clause = start(draw, draw_verb(draw, PEOPLE), tenses.ANY)
    while word is _WHERE and clause.verb.frame is Frame.MOTION:
        clause = start(draw, draw_verb(draw, PEOPLE), tenses.ANY)
    draw_subject(draw, clause, PEOPLE, relative(draw, MAX_DEPTH - 1))
    add_complements(draw, clause, relative(draw, MAX_DEPTH - 1))
    inside = english_question(clause)
    tree = f"(SBARQ (WHADVP (WRB {word.english})) (SQ{inside}) (. ?))"
    return Pair(tree, f"{word.german}{german_question(clause)} ?")


def _which(draw: Draw, traits: Trait, case: Case) -> Pair:
    """Draw "which" with a noun."""
    noun = phrases.draw_noun(draw, traits)
    chosen = phrases.inflected(draw, noun, case, phrases.WHICH)
    return Pair(children_of_noun_phrase(chosen.tree), chosen.german)


def _wh_subject(draw: Draw) -> Pair:
    clause = start(draw, draw_verb(draw, PEOPLE), tenses.ANY)
    word = _which(draw, PEOPLE, Case.NOMINATIVE) if draw.chance(0.3) else _WHO
    add_complements(draw, clause, relative(draw, MAX_DEPTH - 1))
    add_adverbials(draw, clause)
    inside = english_predicate(clause)
    tree = f"(SBARQ (WHNP {word.english}) (SQ{inside}) (. ?))"
    return Pair(tree, f"{german_statement(clause, word.german)} ?")


def _wh_object(draw: Draw) -> Pair:
    dative = draw.chance(0.3)
    frame = Frame.DATIVE if dative else Frame.ACCUSATIVE
    clause = start(draw, draw.pick(find_verbs(frame, PEOPLE)), tenses.ANY)
    word = _WHAT
    if dative:
        word = _WHOM_DATIVE
    elif not clause.verb.objects & ~PEOPLE:
        word = _WHOM_ACCUSATIVE
    elif draw.chance(0.4):
        word = _which(draw, clause.verb.objects, Case.ACCUSATIVE)
    draw_subject(draw, clause, PEOPLE, relative(draw, 1))
    add_objectless_verb(clause)
    add_adverbials(draw, clause)
    inside = english_question(clause)
    tree = f"(SBARQ (WHNP {word.english}) (SQ{inside}) (. ?))"
    return Pair(tree, f"{word.german}{german_question(clause)} ?")


PATTERNS = (
    *(_simple,) * 30,
    *(_fronted_adverbial,) * 15,
    *(_fronted_object,) * 5,
    *(_subordination,) * 14,
    *(_coordination,) * 5,
    *(_complement,) * 8,
    *(_infinitive,) * 5,
    *(_question,) * 5,
    *(_wh_adverb,) * 2,
    *(_wh_subject,) * 2,
    *(_wh_object,) * 3,
)
