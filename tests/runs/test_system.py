"""A system is loaded from its run, and completes settings from its problem."""

from __future__ import annotations

import dataclasses
import logging
from types import SimpleNamespace

import pytest

from t2t_repro import catalogue, runs
from t2t_repro.data.problem import Output, Problem, ReversedProblem
from t2t_repro.decoding.problem_defaults import with_problem_defaults
from t2t_repro.errors import UsageError
from t2t_repro.features.saved_model import saved_model_export, served_translator
from t2t_repro.runs import System
from t2t_repro.runs import system as system_module
from t2t_repro.runs.run import Run
from t2t_repro.settings.decode_hparams import DecodeHParams
from tests.runs.test_run import DIGITS, LETTERS, from_hparams, make_run
from tests.support.recorder import Recorder, record

LONGEST = 48
HPARAMS = DecodeHParams(beam_size=3, alpha=0.9, extra_length=5, batch_size=77)
PREFERRED = {"alpha": 0.3, "extra_length": 7, "batch_size": 555}


class WithGrammar(Problem):
    def target_grammar(self, tokenizer):
        return "grammar of", tokenizer


class Shouting(WithGrammar):
    """A problem that rewrites sources and outputs, and prefers another search."""

    decode_defaults = PREFERRED

    def normalize_source(self, sentence):
        return sentence.lower()

    def postprocess(self, source, written):
        return Output(written.upper())


def preferring(kind=Shouting, **defaults):
    problem = kind()
    problem.decode_defaults = defaults
    return problem


@pytest.fixture
def system():
    run = make_run(
        hparams=catalogue.hparams("transformer_tiny").parse(f"max_length={LONGEST}"),
        data_dir="the data",
    )
    return System(run, Shouting(), "model", (DIGITS, LETTERS), "checkpoint")


@pytest.fixture
def loading(monkeypatch):
    """Record how the package and the checkpoint of a system are found."""
    model = SimpleNamespace(from_hparams=Recorder(from_hparams, "the model"))
    monkeypatch.setattr(catalogue, "model", lambda name: model)
    for name in ("restore", "model_variables", "check_fits"):
        record(monkeypatch, system_module, name)
    load = catalogue.load
    path = "path of the checkpoint"
    return {
        "checkpoint": record(monkeypatch, system_module, "choose_checkpoint", path),
        "catalogue": record(monkeypatch, catalogue, "load", lambda _=None: load()),
    }


@pytest.fixture
def folder(tmp_path):
    DIGITS.save(tmp_path / "inputs.symbols")
    LETTERS.save(tmp_path / "targets.symbols")
    tokenizers = {"inputs": "inputs.symbols", "targets": "targets.symbols"}
    make_run(problem="algorithmic_reverse", tokenizers=tokenizers).save(tmp_path)
    return tmp_path


def test_a_system_is_loaded_from_the_parts_of_its_run(folder, loading):
    system = System.load(folder, "best", folder / "package")
    assert system.run == Run.load_existing(folder)
    assert system.model == "the model"
    assert system.source_tokenizer.symbols == DIGITS.symbols
    assert system.target_tokenizer.symbols == LETTERS.symbols
    assert loading["checkpoint"].call == {"output_dir": folder, "which": "best"}
    assert loading["catalogue"].call == {"usr_dir": str(folder / "package")}
    assert repr(system) == (
        "<System path of the checkpoint, transformer_tiny, algorithmic_reverse>"
    )


def test_a_system_is_scored_with_the_tokenizer_of_its_run(folder, loading):
    assert System.load(folder).problem.bleu_tokenizer == "auto"
    training = {"train_steps": 3, "bleu_tokenizer": "zh"}
    dataclasses.replace(Run.load_existing(folder), training=training).save(folder)
    assert System.load(folder).problem.bleu_tokenizer == "zh"


def test_translators_and_scorers_have_every_part_of_the_system(system, monkeypatch):
    translators = record(monkeypatch, system_module, "Translator")
    system.translator(HPARAMS)
    parts = {"model": "model", "hparams": HPARAMS, "problem": system.problem}
    assert translators.call == parts | {
        "source_tokenizer": DIGITS,
        "target_tokenizer": LETTERS,
        "max_input_length": LONGEST,
        "searches": system._searches,
    }
    scorer = SimpleNamespace(score=lambda *given: [*given])
    scorers = record(monkeypatch, system_module, "PairScorer", scorer)
    assert system.score(["a"], ["x"], HPARAMS, print) == [["a"], ["x"], print]
    sides = {"tokenizers": (DIGITS, LETTERS), "max_length": LONGEST}
    assert scorers.call == parts | sides


def test_equal_settings_share_a_scorer_with_the_problems_defaults(system, monkeypatch):
    made = record(monkeypatch, system_module, "PairScorer", lambda *_, **__: object())
    first = system.scorer()
    assert system.scorer(DecodeHParams()) is first
    assert system.scorer(HPARAMS) is not first
    assert made.calls[0]["hparams"] == DecodeHParams(**PREFERRED)


def test_the_names_that_are_imported_on_first_use_are_listed():
    assert set(runs.__all__) <= set(dir(runs))
    for name in runs.__all__:
        assert getattr(runs, name).__name__ == name


@pytest.mark.parametrize(
    ("own", "given", "message"),
    [
        ({}, {"mbr_scale": 0.5}, r"mbr_scale=0\.5, expected 0"),
        ({"mbr_scale": 0.5}, {}, r"mbr_scale=0\.5, expected 0"),
        ({"beam_size": 1, "sampling_method": "random"}, {}, "expected argmax"),
    ],
)
def test_an_export_refuses_what_is_asked_or_preferred(system, own, given, message):
    system.problem = preferring(**own)
    with pytest.raises(UsageError, match=message):
        system.export("folder", DecodeHParams(**given))


@pytest.mark.parametrize(
    ("problem", "is_warned"), [(Shouting(), True), (Problem(), False)]
)
def test_an_export_searches_as_the_problem_prefers_and_reports_raw_output(
    system, monkeypatch, caplog, problem, is_warned
):
    caplog.set_level(logging.INFO, "t2t_repro")
    served = record(monkeypatch, served_translator, "ServedTranslator")
    record(monkeypatch, saved_model_export, "export_saved_model")
    system.problem = problem
    system.export("folder", max_source_tokens=777)
    assert served.call == {
        "model": "model",
        "source_tokenizer": DIGITS,
        "target_tokenizer": LETTERS,
        "hparams": DecodeHParams(**problem.decode_defaults),
        "max_input_length": LONGEST,
        "problem": problem,
        "max_source_tokens": 777,
    }
    assert ("raw output" in caplog.text) == is_warned
    assert ("`normalize_source`" in caplog.text) == is_warned


def test_a_grammar_is_refused_before_an_export_for_ctranslate2(system):
    with pytest.raises(UsageError, match="constrain not supported by the engine"):
        system.export_ctranslate2("folder", DecodeHParams(constrain="tree"))


TREES = {"constrain": "tree"}
GRAMMAR = preferring(**TREES)
WORDS = preferring(**TREES, word_cost=0.7)
PLAIN = Problem()
PARSING = catalogue.problem("parsing_ptb")


def completed(problem, given="", **engine):
    if isinstance(given, str):
        given = DecodeHParams().parse(given)
    return with_problem_defaults(given, problem, LONGEST, **engine)


@pytest.mark.parametrize(
    ("problem", "given", "expected"),
    [
        (Shouting(), "beam_size=2", {"beam_size": 2, **PREFERRED}),
        # A default counts as given if it is text.
        (Shouting(), "alpha=0.6", {"alpha": 0.6, "extra_length": 7}),
        (Shouting(), DecodeHParams(alpha=0.6), {"alpha": 0.3}),
        (preferring(batch_size=3), "", {"batch_size": 3}),
        (Shouting(), "prefer_unrepaired=true", {"prefer_unrepaired": True}),
        (Shouting(), "", {"constrain": "none"}),
        (GRAMMAR, "", {"constrain": "tree"}),
        (GRAMMAR, "constrain=none", {"constrain": "none"}),
        (
            Shouting(),
            "constrain=tree,prefer_unrepaired=false",
            {"constrain": "tree", "prefer_unrepaired": False},
        ),
        # A reversed problem has other defaults of its base, but no grammar.
        (
            ReversedProblem(preferring(WithGrammar, **TREES, alpha=0.4)),
            "",
            {"constrain": "none", "alpha": 0.4},
        ),
        (PARSING, "mbr_scale=1,mbr_consensus=true", {"mbr_consensus": True}),
        (WORDS, "", {"constrain": "tree", "word_cost": 0.7}),
        (WORDS, "constrain=none", {"word_cost": 0}),
        (GRAMMAR, "word_cost=0.5", {"word_cost": 0.5}),
    ],
)
def test_the_problems_defaults_hold_for_what_is_not_given(problem, given, expected):
    found = completed(problem, given)
    assert {name: getattr(found, name) for name in expected} == expected
    # As `t2t evaluate` and `t2t train` do.
    assert completed(problem, found) == found


def test_an_engine_without_grammars_searches_without_one():
    found = completed(WORDS, follows_grammar=False)
    assert (found.constrain, found.word_cost) == ("none", 0)


def test_a_default_batch_may_be_smaller_than_the_longest_source():
    found = with_problem_defaults(DecodeHParams(), Shouting(), 5_000)
    assert found.batch_size == 555


@pytest.mark.parametrize(
    ("problem", "given", "message"),
    [
        (PLAIN, "batch_size=47", "received batch_size=47, expected at least 48"),
        (PLAIN, "prefer_unrepaired=true", "prefer_unrepaired would have no effect"),
        (PLAIN, "constrain=tree", "problem has no grammar: leave it out"),
        (
            Shouting(),
            "mbr_scale=1,mbr_consensus=true",
            r"outputs of .* cannot be combined: leave",
        ),
        (Shouting(), "word_cost=0.5", "word_cost would have no effect: constrain"),
        (Shouting(), DecodeHParams(word_cost=0.5), "word_cost would have no effect"),
    ],
)
def test_settings_that_do_not_fit_the_problem_are_refused(problem, given, message):
    with pytest.raises(UsageError, match=message):
        completed(problem, given)
