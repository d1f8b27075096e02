"""The complements of copulas, prices and passives."""

from __future__ import annotations

from t2t_repro.features.synthetic import english, lexicon, phrases
from t2t_repro.features.synthetic.draw import Draw
from t2t_repro.features.synthetic.german import Case, cardinal, contract
from t2t_repro.features.synthetic.linearization import Clause
from t2t_repro.features.synthetic.traits import PEOPLE, Trait


def add_predicate(draw: Draw, clause: Clause, traits: Trait) -> None:
    """Add an adjective, a comparison or an age after "be"."""
    kind = draw.below(10)
    if kind == 0 and traits & PEOPLE:
        number = 2 + draw.below(97)
        years = f"(NP (CD {english.cardinal(number)}) (NNS years))"
        clause.objects = f" (ADJP {years} (JJ old))"
        clause.predicate_de = f" {cardinal(number)} Jahre alt"
    elif kind < 3:
        _add_comparison(draw, clause, traits)
    else:
        add_adjective(draw, clause, traits)


def add_adjective(draw: Draw, clause: Clause, traits: Trait) -> None:
    """Add a predicate adjective for a subject with these traits."""
    adjective = draw.pick(lexicon.adjectives(traits))
    clause.objects = f" (ADJP (JJ {adjective.english}))"
    clause.predicate_de = f" {adjective.german}"


def _add_comparison(draw: Draw, clause: Clause, traits: Trait) -> None:
    adjective = draw.pick(lexicon.comparable_adjectives(traits))
    standard = phrases.noun_phrase(draw, traits, Case.NOMINATIVE, phrases.DEFINITE)
    more, _, rest = adjective.english_comparative.rpartition(" ")
    word = f"(RBR {more}) (JJ {rest})" if more else f"(JJR {rest})"
    clause.objects = f" (ADJP {word} (PP (IN than) {standard.tree}))"
    clause.predicate_de = f" {adjective.german_comparative} als {standard.german}"


def add_price(draw: Draw, clause: Clause) -> None:
    """Add a price after "cost"."""
    price = 2 + draw.below(998)
    clause.objects = f" (NP (CD {price}) (NNS euros))"
    clause.predicate_de = f" {price} Euro"


def add_agent(draw: Draw, clause: Clause) -> None:
    """Add the particle of a passive verb and, with some probability, its agent."""
    clause.objects = clause.verb.english.particle
    if draw.chance(0.6):
        agent = phrases.noun_phrase(draw, PEOPLE, Case.DATIVE, phrases.PLAIN)
        clause.objects += f" (PP (IN by) {agent.tree})"
        clause.manner_de = f" {contract('von', agent.german)}"
