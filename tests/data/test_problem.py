from __future__ import annotations

import pytest

from t2t_repro import catalogue, registry
from t2t_repro.data.problem import Problem, ReversedProblem, Vocabulary
from t2t_repro.errors import UsageError, UserError
from t2t_repro.translation_scores import pairwise_bleu


class CountingGermanToEnglish(Problem):
    """Counts.

    More.
    """

    vocabulary = Vocabulary(size=500, model_type="unigram", shared=False)
    max_length = 40
    splits = ("train", "dev")

    def pairs(self, split, tmp_dir):
        yield "eins", f"one {split}"


def test_an_unregistered_subclass_does_not_take_its_parents_name_and_files():
    with registry.problems.isolated():

        @registry.register_problem("counting_under_another_name")
        class Registered(CountingGermanToEnglish):
            """Counts."""

    class UnregisteredChild(Registered):
        """Counts, too."""

    parent, child = Registered(), UnregisteredChild()
    assert parent.name == parent.file_prefix == "counting_under_another_name"
    assert child.name == child.file_prefix == "unregistered_child"


def test_default_settings_come_from_the_problem():
    settings = CountingGermanToEnglish().prepare_settings
    assert (
        settings.vocab_size,
        settings.model_type,
        settings.shared_vocabulary,
        settings.max_pair_length,
    ) == (500, "unigram", False, 40)


def test_a_reversed_problem_swaps_the_sides():
    reversed_problem = ReversedProblem(CountingGermanToEnglish())
    assert list(reversed_problem.pairs("dev", None)) == [("one dev", "eins")]


def test_a_reversed_problem_shares_the_files_of_its_base():
    base = CountingGermanToEnglish()
    reversed_problem = ReversedProblem(base)
    assert reversed_problem.name == "counting_german_to_english_rev"
    assert reversed_problem.file_prefix == base.file_prefix
    assert reversed_problem.prepare_settings == base.prepare_settings
    assert (base.was_reversed, reversed_problem.was_reversed) == (False, True)


def test_a_problem_cannot_be_reversed_twice():
    with pytest.raises(UserError, match="at most one _rev"):
        ReversedProblem(ReversedProblem(CountingGermanToEnglish()))


def test_a_problem_with_its_own_text_accepts_no_files():
    with pytest.raises(UsageError, match="text_pairs"):
        ReversedProblem(CountingGermanToEnglish()).with_files({})


def test_a_reversed_problem_is_scored_as_its_base():
    class Scored(Problem):
        metric = "inverse"
        decode_defaults = {"beam_size": 2}  # noqa: RUF012

        def development_score(self, hypotheses, references):
            return 42.0

        def score(self, hypotheses, references):
            return "scores"

        def similarities(self, outputs):
            return [[7.0]]

    reversed_problem = ReversedProblem(Scored())
    assert reversed_problem.metric == "inverse"
    assert reversed_problem.decode_defaults == {"beam_size": 2}
    assert reversed_problem.development_score([], []) == 42.0
    assert reversed_problem.score([], []) == "scores"
    assert reversed_problem.similarities([]) == [[7.0]]


def test_each_side_of_a_problem_has_its_own_tokenizer():
    class EnglishToChinese(Problem):
        source_language = "en"
        target_language = "zh"

    chinese, english = ["狗猫看见树。"], ["a cat sees a tree now"]
    forward, back = EnglishToChinese(), ReversedProblem(EnglishToChinese())
    assert "tok:zh" in forward.score(chinese, chinese).bleu.signature
    assert forward.development_score(chinese, chinese) == pytest.approx(100)
    assert forward.similarities([*chinese, "狗猫看见山。"])[0][1] > 10
    assert "tok:13a" in back.score(english, english).bleu.signature
    given = back.with_bleu_tokenizer("char")
    assert "tok:char" in given.score(english, english).bleu.signature
    assert back.bleu_tokenizer == "auto"


def test_outputs_are_combined_only_by_a_problem_that_overrides_it():
    class Combined(Problem):
        def consensus(self, outputs, weights):
            return f"{outputs} {weights}"

    assert not Problem().has_consensus
    with pytest.raises(NotImplementedError):
        Problem().consensus(["a"], [1.0])
    assert Combined().has_consensus
    # A reversed problem has other outputs.
    assert not ReversedProblem(Combined()).has_consensus


def test_outputs_of_a_problem_are_compared_by_bleu_of_the_sentence():
    outputs = ["a man rides a bike", "a man rides a red bike"]
    assert Problem().similarities(outputs) == pairwise_bleu(outputs)


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("translate_ende_wmt14", "de"),
        ("translate_ende_wmt14_rev", "en"),
        ("translate_enfr_wmt14", "fr"),
        ("translate_enfr_wmt14_rev", "en"),
        ("translate_ende_synthetic", "de"),
        ("text_pairs", None),
    ],
)
def test_problems_of_one_language_pair_know_their_target_language(name, language):
    catalogue.load()
    assert catalogue.problem(name).target_language == language
