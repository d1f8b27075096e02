"""A system of any engine hands its settings and texts to its translator."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sacrebleu

from t2t_repro.data.problem import Problem
from t2t_repro.decoding.hypothesis import Hypothesis, count_repairs
from t2t_repro.errors import UsageError, UserError
from t2t_repro.runs import TranslatingSystem
from t2t_repro.runs.translating_system import MAX_TRANSLATORS
from t2t_repro.settings.decode_hparams import DecodeHParams
from tests.runs.test_run import DIGITS, LETTERS

LONGEST = 48
HPARAMS = DecodeHParams(beam_size=3, alpha=0.9, extra_length=5, batch_size=77)


class Scoring(Problem):
    """A problem that prefers another search, and whose scores are the texts."""

    decode_defaults = {"alpha": 0.3, "extra_length": 7, "batch_size": 555}  # noqa: RUF012

    def score(self, hypotheses, references):
        return {"hypotheses": hypotheses, "references": references}


class Repeating:
    """A translator that repeats each source twice, and records its calls."""

    def __init__(self, hparams):
        self.hparams = hparams
        self.calls = []

    def translate(self, sentences):
        return [*self.stream(sentences, lambda count: None)]

    def stream(self, sentences, advance, *, prefixes=None, first=0):
        self.calls.append((sentences, prefixes, first))
        for sentence in sentences:
            advance(sentence)
            repairs = ("cut",) if "!" in sentence else ()
            best = Hypothesis(f"{sentence}\n{sentence}", -1.0, repairs)
            yield [best, Hypothesis("worse", -2.0, ("worse",))]


class RepeatingSystem(TranslatingSystem):
    """A system with a translator that repeats."""

    max_input_length = LONGEST
    data_dir = "the data"

    def __init__(self, problem):
        super().__init__(problem, (DIGITS, LETTERS), "the checkpoint")
        self.made = []

    def _new_translator(self, hparams):
        self.made.append(Repeating(hparams))
        return self.made[-1]

    @property
    def only(self):
        (translator,) = self.made
        return translator


@pytest.fixture
def system():
    return RepeatingSystem(Scoring())


def test_a_translator_searches_as_asked_completed_by_the_problem(system):
    system.translator()
    system.translator(DecodeHParams(alpha=0.8))
    preferred = DecodeHParams(alpha=0.3, extra_length=7, batch_size=555)
    assert system.made[0].hparams == preferred
    assert system.made[1].hparams == preferred.replace(alpha=0.8)


def test_equal_settings_share_a_translator_and_others_do_not(system):
    first = system.translator(HPARAMS)
    assert system.translator(HPARAMS.replace()) is first
    assert system.translator(HPARAMS.replace(alpha=0.1)) is not first
    assert len(system.made) == 2


def test_the_translators_that_were_used_last_are_kept(system):
    every = [HPARAMS.replace(extra_length=n) for n in range(MAX_TRANSLATORS + 1)]
    first, *_, last = (system.translator(hparams) for hparams in every)
    assert system.translator(every[-1]) is last
    assert system.translator(every[0]) is not first
    assert len(system.made) == MAX_TRANSLATORS + 2


def test_prefixes_and_the_number_of_the_first_line_reach_the_translator(system):
    [*system.hypotheses(["a", "b"], HPARAMS, prefixes=["x", ""], first=7)]
    [*system.hypotheses(["c"], HPARAMS)]
    assert system.only.calls == [(["a", "b"], ["x", ""], 7), (["c"], None, 0)]


def test_hypotheses_come_from_the_settings_and_report_progress(system):
    done = []
    first, second = system.hypotheses(["a", "b"], HPARAMS, done.append)
    assert [hypothesis.text for hypothesis in first] == ["a\na", "worse"]
    assert second[0].text == "b\nb"
    assert done == ["a", "b"]
    assert system.only.hparams == HPARAMS


def test_the_search_that_is_warmed_up_is_the_one_that_is_used(system):
    system.warm_up(HPARAMS)
    assert [sentences for sentences, *_ in system.only.calls] == [["."]]
    system.translate(["a"], HPARAMS)
    assert system.only.hparams == HPARAMS


def test_an_evaluation_scores_the_best_outputs_as_lines(system):
    done = []
    found = system.evaluate(["a", "b!", "c!"], ["x", "y", "z"], HPARAMS, done.append)
    lines = ["a a", "b! b!", "c! c!"]
    assert found.hypotheses == lines
    assert found.scores == {"hypotheses": lines, "references": ["x", "y", "z"]}
    assert (found.repaired, found.repairs) == (2, {"cut": 2})
    assert done == ["a", "b!", "c!"]
    assert system.only.hparams == HPARAMS


def test_repairs_are_counted_by_kind_most_frequent_first():
    faults = [("a",), (), ("b", "a"), ("b",), ("b",)]
    hypotheses = [Hypothesis("", 0.0, repairs) for repairs in faults]
    assert [*count_repairs(hypotheses).items()] == [("b", 3), ("a", 2)]


def test_threads_share_one_translator(monkeypatch):
    system = RepeatingSystem(Scoring())
    make = system._new_translator
    monkeypatch.setattr(
        system, "_new_translator", lambda hparams: (time.sleep(0.1), make(hparams))[1]
    )
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(system.translator, [HPARAMS, HPARAMS])
    assert first is second
    assert len(system.made) == 1


def test_several_references_score_as_in_sacrebleu():
    system = RepeatingSystem(Problem().with_bleu_tokenizer("char"))
    sources, others = ["ab cd", "ef"], [["ab cd ab", "ef ef"]]
    found = system.evaluate(sources, ["ab cd", "x"], other_references=others)
    streams = [["ab cd", "x"], *others]
    expected = sacrebleu.corpus_bleu(found.hypotheses, streams, tokenize="char").score
    assert found.scores.bleu.value == pytest.approx(expected)
    assert "nrefs:2" in found.scores.bleu.signature
    assert "tok:char" in found.scores.bleu.signature
    with pytest.raises(UserError, match="2 lines in the sources and 1 in the ref"):
        system.evaluate(sources, sources, other_references=[["ab"]])


def test_a_problem_without_bleu_has_one_reference(system):
    with pytest.raises(UsageError, match="received 2 references for problem scoring"):
        system.evaluate(["a"], ["a"], other_references=[["b"]])
    assert system.made == []
