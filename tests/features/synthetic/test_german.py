"""German inflection, compared with forms written by hand."""

from __future__ import annotations

import re

import pytest

from t2t_repro.features.synthetic import german, lexicon
from t2t_repro.features.synthetic.german import Agreement, Case, Gender, VerbBrackets
from t2t_repro.features.synthetic.tenses import Tense
from t2t_repro.features.synthetic.word_traits import Pair

NOUNS = {noun.german: noun for noun in lexicon.NOUNS}
ADJECTIVES = {adjective.german: adjective for adjective in lexicon.ADJECTIVES}
VERBS = {v.german.prefix + v.german.infinitive: v.german for v in lexicon.VERBS}


def decline(determiner: str, adjective: str, noun: str, plural: bool) -> list[str]:
    gender = Gender.PLURAL if plural else NOUNS[noun].gender
    phrases = []
    for case in Case:
        endings = german.declension_after(determiner)
        article = german.determiner(determiner, case, gender) if determiner else ""
        stem = ADJECTIVES[adjective].stem
        form = german.noun_form(NOUNS[noun], case, plural)
        phrases.append(f"{article} {stem}{endings[case][gender]} {form}".strip())
    return phrases


DECLENSION = """\
der alt Hund singular
  der alte Hund, den alten Hund, dem alten Hund, des alten Hundes
der klein Katze singular
  die kleine Katze, die kleine Katze, der kleinen Katze, der kleinen Katze
der neu Buch singular
  das neue Buch, das neue Buch, dem neuen Buch, des neuen Buches
der alt Mann plural
  die alten Männer, die alten Männer, den alten Männern, der alten Männer
ein alt Mann singular
  ein alter Mann, einen alten Mann, einem alten Mann, eines alten Mannes
mein dunkel Küche singular
  meine dunkle Küche, meine dunkle Küche, meiner dunklen Küche, meiner dunklen Küche
kein teuer Auto singular
  kein teures Auto, kein teures Auto, keinem teuren Auto, keines teuren Autos
unser klug Kind plural
  unsere klugen Kinder, unsere klugen Kinder, unseren klugen Kindern, unserer klugen
  Kinder
viel müde Student plural
  viele müde Studenten, viele müde Studenten, vielen müden Studenten, vieler müder
  Studenten
all schwer Koffer plural
  alle schweren Koffer, alle schweren Koffer, allen schweren Koffern, aller schweren
  Koffer
- warm Ei plural
  warme Eier, warme Eier, warmen Eiern, warmer Eier
dies jung Junge singular
  dieser junge Junge, diesen jungen Jungen, diesem jungen Jungen, dieses jungen
  Jungen
ein freundlich Nachbar singular
  ein freundlicher Nachbar, einen freundlichen Nachbarn, einem freundlichen
  Nachbarn, eines freundlichen Nachbarn
"""


@pytest.mark.parametrize("entry", re.findall(r"(\S.+)\n((?:  .+\n)+)", DECLENSION))
def test_determiner_adjective_and_noun_agree_in_every_case(entry):
    (determiner, adjective, noun, number), forms = entry[0].split(), entry[1]
    declined = decline(determiner.strip("-"), adjective, noun, number == "plural")
    assert ", ".join(declined) == " ".join(forms.split())


@pytest.mark.parametrize(
    ("noun", "form"),
    [
        ("Auto", "Autos"),
        ("Frau", "Frauen"),
        ("Brücke", "Brücken"),
        ("Apfel", "Äpfeln"),
    ],
)
def test_dative_plural_ends_in_n_unless_in_s(noun, form):
    assert german.noun_form(NOUNS[noun], Case.DATIVE, plural=True) == form


@pytest.mark.parametrize(
    ("case", "gender", "form"),
    [
        (Case.NOMINATIVE, Gender.MASCULINE, "der"),
        (Case.ACCUSATIVE, Gender.MASCULINE, "den"),
        (Case.DATIVE, Gender.FEMININE, "der"),
        (Case.DATIVE, Gender.PLURAL, "denen"),
        (Case.GENITIVE, Gender.MASCULINE, "dessen"),
        (Case.GENITIVE, Gender.PLURAL, "deren"),
    ],
)
def test_relative_pronoun_takes_case_and_gender(case, gender, form):
    assert german.RELATIVE[case][gender] == form


@pytest.mark.parametrize(
    ("modifier", "head", "nominative", "dative_plural"),
    [
        (("garden", "Garten"), "Tür", "die Gartentür", "den Gartentüren"),
        (("school", "Schul"), "Buch", "das Schulbuch", "den Schulbüchern"),
        (("kitchen", "Küchen"), "Tisch", "der Küchentisch", "den Küchentischen"),
    ],
)
def test_compound_inherits_gender_and_forms_of_its_head(
    modifier, head, nominative, dative_plural
):
    noun = german.compound(Pair(*modifier), NOUNS[head])
    article = german.determiner("der", Case.NOMINATIVE, noun.gender)
    assert f"{article} {german.noun_form(noun, Case.NOMINATIVE, False)}" == nominative
    plural = german.noun_form(noun, Case.DATIVE, True)
    assert (
        f"{german.determiner('der', Case.DATIVE, Gender.PLURAL)} {plural}"
        == dative_plural
    )


@pytest.mark.parametrize(
    ("infinitive", "forms"),
    [
        ("schlafen", "schlafe schläfst schläft schlafen schlafen"),
        ("arbeiten", "arbeite arbeitest arbeitet arbeiten arbeiten"),
        ("lesen", "lese liest liest lesen lesen"),
        ("geben", "gebe gibst gibt geben geben"),
        ("einladen", "lade lädst lädt laden laden"),
        ("haben", "habe hast hat haben haben"),
        ("wissen", "weiß weißt weiß wissen wissen"),
    ],
)
def test_the_present_tense_has_its_forms(infinitive, forms):
    assert list(VERBS[infinitive].present) == forms.split()


@pytest.mark.parametrize(
    "entry",
    [
        "aufmachen PRESENT THIRD: macht, auf, aufmacht",
        "aufmachen PAST THIRD: hat, aufgemacht, aufgemacht hat",
        "aufmachen CAN SECOND: kannst, aufmachen, aufmachen kannst",
        "einschlafen PERFECT THIRD_PLURAL: sind, eingeschlafen, eingeschlafen sind",
        "kaufen PASSIVE THIRD: wurde, gekauft, gekauft wurde",
        "kaufen PRESENT FIRST: kaufe, , kaufe",
        "haben PAST FIRST_PLURAL: hatten, , hatten",
        "gehen WILL FIRST: werde, gehen, gehen werde",
        "gehen MUST_NOT FIRST: darf, gehen, gehen darf",
    ],
)
def test_a_verb_has_two_parts_in_main_clauses_and_one_part_at_the_end_of_others(entry):
    verb, brackets = entry.split(": ")
    infinitive, tense, agreement = verb.split()
    found = german.verb_brackets(VERBS[infinitive], Tense[tense], Agreement[agreement])
    assert found == VerbBrackets(*brackets.split(", "))


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (1, "eins"),
        (16, "sechzehn"),
        (21, "einundzwanzig"),
        (30, "dreißig"),
        (76, "sechsundsiebzig"),
        (101, "einhunderteins"),
        (999, "neunhundertneunundneunzig"),
    ],
)
def test_numbers_are_spelt_units_before_tens(number, word):
    assert german.cardinal(number) == word


@pytest.mark.parametrize(
    ("preposition", "phrase", "form"),
    [
        ("in", "dem alten Haus", "im alten Haus"),
        ("in", "das Haus", "ins Haus"),
        ("zu", "den Schulen", "zu den Schulen"),
        ("von", "dem Lehrer", "vom Lehrer"),
        ("auf", "dem Berg", "auf dem Berg"),
        ("in", "diesem Haus", "in diesem Haus"),
    ],
)
def test_prepositions_merge_with_the_definite_article_only(preposition, phrase, form):
    assert german.contract(preposition, phrase) == form
