"""Tenses, modal verbs included, and the families of tenses that clauses draw from."""

from __future__ import annotations

import enum


class Tense(enum.Enum):
    """A tense, modal or voice; the value of a modal is its English word."""

    PRESENT = "present"
    PROGRESSIVE = "progressive"
    PAST = "past"
    PERFECT = "perfect"
    CAN = "can"
    MUST = "must"
    MUST_NOT = "must not"  # German only: English negates "must"
    WILL = "will"
    SHOULD = "should"
    COULD = "could"
    WANT = "want"
    WANTED = "wanted"
    HAD_TO = "had to"
    PASSIVE = "passive"
    PASSIVE_PERFECT = "passive perfect"
    PASSIVE_MUST = "passive must"


# A tense is drawn as often as it occurs in its family.
Tenses = tuple[Tense, ...]

PASSIVES = frozenset({Tense.PASSIVE, Tense.PASSIVE_PERFECT, Tense.PASSIVE_MUST})
PERFECTS = frozenset({Tense.PERFECT, Tense.PASSIVE_PERFECT})
SIMPLE = frozenset({Tense.PRESENT, Tense.PAST})

NOW: Tenses = (
    *(Tense.PRESENT,) * 5,
    *(Tense.PROGRESSIVE,) * 2,
    *(Tense.CAN,) * 2,
    Tense.MUST,
    Tense.WANT,
)
PRESENT: Tenses = (*NOW, *(Tense.WILL,) * 2, Tense.SHOULD)
PAST: Tenses = (*(Tense.PAST,) * 6, Tense.COULD, Tense.HAD_TO, Tense.WANTED)
ANY: Tenses = (*PRESENT, *PAST, *(Tense.PERFECT,) * 4)
