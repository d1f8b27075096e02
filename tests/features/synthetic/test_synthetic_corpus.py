"""The corpus of the grammar: its splits, sentences and trees."""

from __future__ import annotations

import functools
import itertools
import random
import re
from collections import Counter

import pytest

from t2t_repro.features.parsing.trees import read_trees
from t2t_repro.features.synthetic.synthetic_corpus import (
    SyntheticSentence,
    draw_sentence,
    sentences,
    split_of,
)
from t2t_repro.features.synthetic.word_traits import Draw


@functools.cache
def sample() -> tuple[SyntheticSentence, ...]:
    return tuple(sentences("train", 2_000))


def test_a_longer_request_begins_with_the_shorter_one():
    short, long = list(sentences("dev", 3)), list(sentences("dev", 6))
    assert long[:3] == short


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_every_sentence_belongs_to_its_split_and_comes_once(split):
    texts = [sentence.english for sentence in sentences(split, 20)]
    assert {split_of(text) for text in texts} == {split}
    assert len(set(texts)) == len(texts)


def test_unknown_split_is_refused():
    with pytest.raises(ValueError, match="split=validation"):
        next(sentences("validation", 1))


BY_EYE = """\
This cake, I have not eaten.
  Diesen Kuchen habe ich nicht gegessen.
The friendly daughter cleans up the clean kitchen although it is quiet.
  Die freundliche Tochter räumt die saubere Küche auf, obwohl sie ruhig ist.
No queen has forgotten to close the suitcase.
  Keine Königin hat vergessen, den Koffer zuzumachen.
He asked whether you visited her rich brother whose horses are tired.
  Er hat gefragt, ob du ihren reichen Bruder besucht hast, dessen Pferde müde sind.
I call a gardener of whom the women dreamed.
  Ich rufe einen Gärtner an, von dem die Frauen geträumt haben.
A student whom we must not follow slowly follows her.
  Ein Student, dem wir nicht langsam folgen dürfen, folgt ihr.
Today this baker has been visited by these students.
  Heute ist dieser Bäcker von diesen Studenten besucht worden.
Whom must you thank with the farmer?
  Wem musst du mit dem Bauern danken?
Which small cake did you eat in this kitchen room last week?
  Welchen kleinen Kuchen hast du letzte Woche in diesem Küchenzimmer gegessen?
The brother has repaired forty-six yellow cars on this island today.
  Der Bruder hat heute sechsundvierzig gelbe Autos auf dieser Insel repariert.
The duck falls asleep quietly in these gardens at 6:30.
  Die Ente schläft um 6.30 Uhr leise in diesen Gärten ein.
A sick boy of the man is calling a sad mother.
  Ein kranker Junge des Mannes ruft eine traurige Mutter an.
When thirteen hungry lions were beautiful, a farmer came back.
  Als dreizehn hungrige Löwen schön waren, ist ein Bauer zurückgekommen.
When they ate the egg, it was bigger than the small apple.
  Als sie das Ei gegessen haben, war es größer als der kleine Apfel.
Our daughter finds an umbrella, but she throws it away on Sunday.
  Unsere Tochter findet einen Regenschirm, aber sie wirft ihn am Sonntag weg.
She does not thank us in order to think about them.
  Sie dankt uns nicht, um über sie nachzudenken.
"""


@pytest.mark.parametrize("pair", re.findall(r"(.+)\n  (.+)\n", BY_EYE))
def test_pairs_checked_by_eye(pair):
    source, target = pair
    translations = {s.english: s.german for s in sample()}
    assert translations[source] == target


class ChangedDraw(Draw):
    """The choices of `Draw(seed)`, except that one of them is drawn again."""

    def __init__(self, seed: str, changed: int) -> None:
        super().__init__(seed)
        same, other = self._random, random.Random(f"other {seed}").random
        count = itertools.count()

        def choose() -> float:
            value = same()
            return other() if next(count) == changed else value

        self._random = choose


def test_an_english_sentence_has_one_translation_and_one_tree():
    """A choice that does not change the English text must not change anything."""
    places = random.Random(0)
    unchanged = 0
    for seed in map(str, range(1_500)):
        sentence = draw_sentence(Draw(seed))
        changed = draw_sentence(ChangedDraw(seed, places.randrange(1, 30)))
        if changed.english == sentence.english:
            unchanged += 1
            assert changed == sentence
    assert unchanged > 300


def treebank_tokens(text: str) -> list[str]:
    """Tokenize as the Penn Treebank does, as far as the grammar's text needs it."""
    text = re.sub(r"\b([Cc]an)not\b", r"\1 not", text)
    return re.findall(r"[^\s,.?]+|[,.?]", text)


def test_the_leaves_of_a_tree_are_the_tokens_of_the_english_sentence():
    for sentence in sample():
        ((_, tree),) = read_trees([sentence.tree])
        assert list(tree.words) == treebank_tokens(sentence.english)


def test_trees_use_treebank_labels_only():
    labels = set(re.findall(r"\((\S+)", "".join(s.tree for s in sample())))
    phrase_labels = "S SQ SBAR SBARQ NP VP PP ADVP ADJP QP PRT WHNP WHPP WHADVP"
    word_labels = (
        "CC CD DT IN JJ JJR MD NN NNP NNS PRP PRP$ RB RBR RP TO VB VBD VBG VBN VBP "
        "VBZ WDT WP WP$ WRB . ,"
    )
    assert labels == {*phrase_labels.split(), *word_labels.split()}


def relative_depth(tree: str) -> int:
    """Return how many relative clauses are nested within each other."""
    open_brackets: list[bool] = []
    deepest = 0
    for bracket in re.findall(r"\(SBAR(?= \(WH[NP]P)|\(|\)", tree):
        if bracket == ")":
            open_brackets.pop()
            continue
        open_brackets.append(bracket == "(SBAR")
        deepest = max(deepest, sum(open_brackets))
    return deepest


def test_relative_clauses_are_nested_to_each_depth_up_to_three_and_no_deeper():
    depths = Counter(relative_depth(sentence.tree) for sentence in sample())
    assert set(depths) == {0, 1, 2, 3}
    assert min(depths.values()) >= 5


PHENOMENA = {
    "subordinate clause, verb last": r"(weil|obwohl|dass|während) .* \w+(t|en)[.,]",
    "fronted subordinate clause": r"^(Weil|Obwohl|Als|Wenn|Während|Bevor) .*, \w+ ",
    "conditional": r"\b[Ww]enn\b",
    "als for the past": r"(^|, )[Aa]ls \w+",
    "indirect question": r", ob ",
    "separated prefix": r" (auf|zu|ab|an|ein|weg|mit|zurück)[.,?]",
    "participle of a separable verb": r"\b(auf|zu|ab|an|ein|weg|mit|zurück)ge\w+",
    "zu within a separable verb": r"\b(auf|zu|ab|an|ein|weg|mit)zu\w+en\b",
    "purpose": r", um ",
    "perfect with sein": r"\b(ist|bin|sind) .*(gegangen|gefahren|gelaufen)",
    "modal": r"\b(kann|muss|will|sollte|konnte|musste|wollte)\b",
    "prohibition": r"\b(darf|dürfen) .*nicht\b",
    "future": r"\b(wird|werden|werde|wirst)\b",
    "passive": r"\bwurden? ",
    "passive perfect": r"\bworden\b",
    "nicht": r"\bnicht\b",
    "kein": r"\b[Kk]ein",
    "masculine dative": r"\b(dem|einem|diesem) \w+en \w+",
    "genitive": r"\bdes \w+e?[sn]\b",
    "weak noun": r"\b(Studenten|Nachbarn|Löwen|Bären)\b",
    "contraction": r"\b(im|ins|zum|zur|vom|beim)\b",
    "possessive relative pronoun": r", (dessen|deren) [A-Z]",
    "dative relative pronoun": r", (dem|denen|der) .*(helfen|geholfen|hilft)",
    "preposition and relative pronoun": r", (in|auf|über|von) (dem|der|den|die|das) ",
    "comparison": r"\b(größer|älter|teurer|schöner) als\b",
    "number word": r"\b\w+und(zwanzig|dreißig|vierzig|fünfzig)\b",
    "year": r"\bim Jahr (19|20)\d\d\b",
    "time of day": r"\bum \d+\.\d\d Uhr\b",
    "date": r"\bam \d+\. [JFMASOND]",
    "age": r" Jahre alt\b",
    "question word": r"^(Wer|Wen|Wem|Was|Wo|Wann|Warum|Welch\w+) ",
    "yes-no question": r"^(Hat|Ist|Kann|Muss|Will|Sind|Haben|Wird) .*\?$",
    "fronted accusative": r"^Diesen \w+",
    "compound": r"\b(Garten|Küchen|Schul)(tür|tisch|buch|fenster|uhr|stuhl)",
    "object pronoun of a thing": r"\b(und|sie|er|ich) .*\b(ihn|es)\b",
}


@pytest.mark.parametrize("phenomenon", PHENOMENA)
def test_phenomenon_occurs_often_enough_to_be_learnt(phenomenon):
    pattern = re.compile(PHENOMENA[phenomenon])
    found = sum(bool(pattern.search(sentence.german)) for sentence in sample())
    assert found >= 8, f"{phenomenon}: {found} of {len(sample())}"
