"""Choose personal pronouns; `clauses` and `anaphora` say how often."""

from __future__ import annotations

from dataclasses import dataclass

from t2t_repro.features.synthetic.german import (
    THIRD_PERSON,
    Agreement,
    Case,
    Gender,
    Noun,
)
from t2t_repro.features.synthetic.phrases import NounPhrase
from t2t_repro.features.synthetic.word_traits import NO_TRAITS, PEOPLE, Draw, Trait

_NO_NOUN = Noun("", "", "", Gender.NEUTER, "", "", weak=False, traits=NO_TRAITS)


@dataclass(frozen=True, slots=True)
class _Pronoun:
    """A personal pronoun in both languages.

    Attributes:
        subject: English nominative.
        object: English accusative and dative.
        agreement: Person and number.
        german: German nominative, accusative and dative.
    """

    subject: str
    object: str
    agreement: Agreement
    german: tuple[str, str, str]

    def phrase(self, case: Case) -> NounPhrase:
        """Return the pronoun in one case."""
        word = self.subject if case == Case.NOMINATIVE else self.object
        return NounPhrase(
            tree=f"(NP (PRP {word}))",
            german=self.german[case],
            agreement=self.agreement,
            noun=_NO_NOUN,
            pronoun=True,
        )


_PRONOUNS = (
    _Pronoun("I", "me", Agreement.FIRST, ("ich", "mich", "mir")),
    _Pronoun("you", "you", Agreement.SECOND, ("du", "dich", "dir")),
    _Pronoun("he", "him", Agreement.THIRD, ("er", "ihn", "ihm")),
    _Pronoun("she", "her", Agreement.THIRD, ("sie", "sie", "ihr")),
    _Pronoun("we", "us", Agreement.FIRST_PLURAL, ("wir", "uns", "uns")),
    _Pronoun("they", "them", Agreement.THIRD_PLURAL, ("sie", "sie", "ihnen")),
)


def draw_pronoun(
    draw: Draw,
    share: float,
    traits: Trait,
    case: Case,
    subject_agreement: Agreement = Agreement.THIRD,
) -> NounPhrase | None:
    """Draw a pronoun in place of a noun phrase for people, or None.

    It never repeats a subject of the first or second person (no "we see us"). "He" and
    "him" in "he sees him" are two people.

    Args:
        draw: The source of choices.
        share: Share of these noun phrases that are pronouns.
        traits: The traits of the noun.
        case: The case.
        subject_agreement: Person and number of the subject of the same clause.

    Returns:
        None if the noun is not of people, or by chance.
    """
    if not (traits & PEOPLE and draw.chance(share)):
        return None
    drawn = draw.pick(_PRONOUNS)
    while (
        case != Case.NOMINATIVE
        and drawn.agreement == subject_agreement != Agreement.THIRD
    ):
        drawn = draw.pick(_PRONOUNS)
    return drawn.phrase(case)


def anaphor(antecedent: NounPhrase, case: Case) -> NounPhrase:
    """Return the pronoun that refers to `antecedent`, in its German gender."""
    noun = antecedent.noun
    gender = Gender.PLURAL if antecedent.plural else noun.gender
    nominative, accusative, dative = (forms[gender] for forms in THIRD_PERSON)
    if antecedent.plural:
        words = ("they", "them")
    elif noun.traits & Trait.MAN:
        words = ("he", "him")
    elif noun.traits & Trait.WOMAN:
        words = ("she", "her")
    else:
        words = ("it", "it")
    german = (nominative, accusative, dative)
    return _Pronoun(*words, antecedent.agreement, german).phrase(case)
