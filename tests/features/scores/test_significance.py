from __future__ import annotations

import itertools
import json
import random
import re
import subprocess
import sys

import pytest
import sacrebleu

from t2t_repro.errors import UserError
from t2t_repro.features.scores.significance import TESTS, compare_translations

REFERENCES = [f"the {a} and the {b} are here ." for a in "abcdefgh" for b in "stuvwxyz"]


def spoilt(share, seed):
    generator = random.Random(seed)
    return [
        "they are gone ." if generator.random() < share else line for line in REFERENCES
    ]


def compared(test, **systems):
    found = compare_translations(systems, REFERENCES, test, samples=200)
    return {(c.metric, c.system): c for c in found}


@pytest.mark.parametrize("test", TESTS)
def test_only_a_clear_difference_is_significant(test):
    same = spoilt(0.5, 1)
    found = compared(test, base=same, same=list(same), better=spoilt(0.1, 2))
    for metric in ("BLEU", "chrF2", "TER"):
        assert found[metric, "better"].p_value < 0.05
        assert found[metric, "same"].p_value > 0.9
        assert found[metric, "base"].p_value is None


@pytest.fixture
def systems():
    return {"base": spoilt(0.5, 1), "near": spoilt(0.45, 3), "far": spoilt(0.1, 2)}


def printed_by_sacrebleu(folder, systems, *flags):
    for name, lines in {**systems, "references": REFERENCES}.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "sacrebleu", "references", "-i", *systems),
            *("-m", "bleu", "chrf", "ter", "-w", "6", "--no-color", *flags),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stdout


def test_bootstrap_of_three_systems_is_that_of_sacrebleus_command_line(
    tmp_path, systems
):
    found = compared("bootstrap", **systems)
    # As text: its JSON fails on numbers of TER.
    flags = ["--paired-bs", "--paired-bs-n", "200", "-f", "text"]
    printed = printed_by_sacrebleu(tmp_path, systems, *flags)
    places = [(m, name) for name in systems for m in ("BLEU", "chrF2", "TER")]
    intervals = re.findall(r"([\d.]+) \(([\d.]+) ± ([\d.]+)\)", printed)
    for place, numbers in zip(places, intervals, strict=True):
        comparison = found[place]
        ours = (comparison.score, comparison.mean, comparison.confidence)
        assert ours == pytest.approx([*map(float, numbers)], abs=2e-6)
    p_values = re.findall(r"\(p = ([\d.]+)\)", printed)
    for place, p_value in zip(places[3:], p_values, strict=True):
        assert found[place].p_value == pytest.approx(float(p_value), abs=6e-5)


def shortened(seed):
    """Return the references cut at random, so that hardly two trials tie."""
    generator = random.Random(seed)
    return [
        f"{line[: generator.randint(9, len(line))]} {generator.choice('stuvwxyz')}"
        for line in REFERENCES
    ]


def test_randomisation_of_three_systems_is_that_of_sacrebleus_command_line(tmp_path):
    """Except for TER, whose edits are whole numbers: sacreBLEU counts no ties."""
    systems = {"base": shortened(1), "near": shortened(2), "far": spoilt(0.1, 2)}
    found = compared("approximate_randomization", **systems)
    flags = ["--paired-ar", "--paired-ar-n", "200", "-f", "json"]
    expected = json.loads(printed_by_sacrebleu(tmp_path, systems, *flags))
    for name, theirs in zip(systems, expected, strict=True):
        for metric in ("BLEU", "chrF2", "TER"):
            ours = found[metric, name]
            assert ours.score == pytest.approx(theirs[metric]["score"])
            if metric != "TER" or name == "base":
                assert ours.p_value == pytest.approx(theirs[metric]["p_value"])
            else:
                assert ours.p_value >= theirs[metric]["p_value"]


def test_randomisation_approximates_the_share_of_all_exchanges():
    first = [*shortened(1)[:5], *REFERENCES[5:9]]
    second = [*shortened(2)[:5], *REFERENCES[5:9]]
    references = REFERENCES[:9]

    def ter(lines):
        return sacrebleu.corpus_ter(lines, [references]).score

    def difference(kept):
        pairs = [(a, b) if k else (b, a) for a, b, k in zip(*kept, strict=True)]
        return abs(ter([a for a, _ in pairs]) - ter([b for _, b in pairs]))

    true = difference((first, second, [True] * 9))
    assert true > 0
    exchanges = itertools.product((True, False), repeat=5)
    drawn = [difference((first, second, [*kept] + [True] * 4)) for kept in exchanges]
    expected = sum(d >= true - 1e-9 for d in drawn) / len(drawn)
    systems = {"first": first, "second": second}
    found = compare_translations(systems, references, "approximate_randomization")
    assert found[-1].p_value == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("test", TESTS)
def test_different_translations_with_equal_scores_have_p_1(test):
    """Of 50 lines, ten have one wrong word: in each system another word."""
    lines = REFERENCES[:50]
    systems = {
        name: [f"{line[:-2]}{end}" if n < 10 else line for n, line in enumerate(lines)]
        for name, end in (("first", ","), ("second", ";"))
    }
    found = compare_translations(systems, lines, test)
    assert {(c.system, c.p_value) for c in found} == {("first", None), ("second", 1.0)}


def test_one_different_sentence_is_never_significant_by_randomization():
    second = ["they are gone .", *REFERENCES[1:]]
    found = compared("approximate_randomization", first=REFERENCES, second=second)
    for metric in ("BLEU", "chrF2", "TER"):
        assert found[metric, "second"].score != found[metric, "first"].score
        assert found[metric, "second"].p_value == 1


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize(
    ("first", "second", "references", "chrf", "ter"),
    [
        ([""], [""], [""], [0, 0], [0, 0]),
        ([""] * 3, ["a", "b", ""], ["a", "b", "c"], [0, 500 / 7], [100, 100 / 3]),
        (["one"], ["two"], ["one"], [100, 100 / 9], [0, 100]),
        (["one"], ["one"], ["one"], [100, 100], [0, 0]),
    ],
)
def test_empty_and_single_sentences_can_be_compared(
    test, first, second, references, chrf, ter
):
    """Without four words there are no 4-grams, so corpus BLEU is 0."""
    found = compare_translations({"a": first, "b": second}, references, test, 20)
    scores = [comparison.score for comparison in found]
    assert scores == pytest.approx([0, 0, *chrf, *ter])
    if first == second:
        assert [x.p_value for x in found if x.system == "b"] == [1, 1, 1]


@pytest.mark.parametrize(
    ("systems", "references", "message"),
    [
        ({"a": ["x"]}, ["x"], "received 1 system"),
        ({"a": ["x"], "b": ["x", "y"]}, ["x"], "received 2 translations in b and 1"),
        ({"a": [], "b": []}, [], "0 references"),
    ],
)
def test_incomparable_systems_are_refused(systems, references, message):
    with pytest.raises(UserError, match=message):
        compare_translations(systems, references)
