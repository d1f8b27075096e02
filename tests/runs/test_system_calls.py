"""A system hands everything it receives to the function that reads it."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from types import SimpleNamespace

import pytest

from t2t_repro import catalogue, runs
from t2t_repro.data.problem import Output, Problem, ReversedProblem
from t2t_repro.decoding.hypothesis import Hypothesis
from t2t_repro.decoding.problem_defaults import with_problem_defaults
from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.attention_view import capture
from t2t_repro.features.ctranslate2 import ctranslate2_export
from t2t_repro.features.saved_model import saved_model_export, served_translator
from t2t_repro.runs import System, run_checkpoints
from t2t_repro.runs import system as system_module
from t2t_repro.runs.run import Run
from t2t_repro.settings.decode_hparams import DecodeHParams
from tests.runs.test_run import DIGITS, LETTERS, make_run
from tests.support.recorder import Recorder, record

LONGEST = 48
HPARAMS = DecodeHParams(beam_size=3, alpha=0.9, extra_length=5, batch_size=77)


class Shouting(Problem):
    """A problem that rewrites sources and outputs, and prefers another search."""

    decode_defaults = {"alpha": 0.3, "extra_length": 7, "batch_size": 555}  # noqa: RUF012

    def normalize_source(self, sentence):
        return sentence.lower()

    def postprocess(self, source, written):
        return Output(written.upper())

    def target_grammar(self, tokenizer):
        return "grammar of", tokenizer


@pytest.fixture
def system():
    run = SimpleNamespace(hparams=SimpleNamespace(max_length=LONGEST))
    return System(run, Shouting(), "model", (DIGITS, LETTERS), "checkpoint")


@pytest.fixture
def loading(monkeypatch):
    """Record what loading a system calls."""
    calls = {
        "restore": record(monkeypatch, system_module, "restore"),
        "variables": record(
            monkeypatch, system_module, "model_variables", "variables of the model"
        ),
        "checkpoint": record(
            monkeypatch, system_module, "choose_checkpoint", "path of the checkpoint"
        ),
        "fit": record(monkeypatch, system_module, "check_fits"),
    }
    model = SimpleNamespace(from_hparams=Recorder(from_hparams, "the model"))
    monkeypatch.setattr(catalogue, "model", Recorder(catalogue.model, model))
    load = catalogue.load
    calls["catalogue"] = record(monkeypatch, catalogue, "load", lambda _=None: load())
    calls["model"] = model.from_hparams
    return calls


def from_hparams(hparams, source_vocab_size, target_vocab_size):
    """Have the parameters of a model's `from_hparams`."""


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
    assert system.problem.name == "algorithmic_reverse"
    assert system.model == "the model"
    assert system.source_tokenizer.symbols == DIGITS.symbols
    assert system.target_tokenizer.symbols == LETTERS.symbols
    assert system.checkpoint == "path of the checkpoint"
    assert loading["checkpoint"].call == {"output_dir": folder, "which": "best"}
    assert loading["catalogue"].call == {"usr_dir": str(folder / "package")}


def test_a_system_is_scored_with_the_tokenizer_of_its_run(folder, loading):
    assert System.load(folder).problem.bleu_tokenizer == "auto"
    run = Run.load_existing(folder)
    dataclasses.replace(run, training={"train_steps": 3, "bleu_tokenizer": "zh"}).save(
        folder
    )
    assert System.load(folder).problem.bleu_tokenizer == "zh"


@pytest.fixture
def translators(monkeypatch):
    return record(monkeypatch, system_module, "Translator")


def test_a_translator_gets_every_part_of_the_system(system, translators):
    system.translator(HPARAMS)
    assert translators.call == {
        "model": "model",
        "source_tokenizer": DIGITS,
        "target_tokenizer": LETTERS,
        "hparams": HPARAMS,
        "max_input_length": LONGEST,
        "problem": system.problem,
    }


def test_a_translator_searches_as_the_problem_prefers_by_default(system, translators):
    system.translator()
    expected = DecodeHParams(alpha=0.3, extra_length=7, batch_size=555)
    assert translators.call["hparams"] == expected


@pytest.fixture
def scorers(monkeypatch):
    """Record the arguments of scorers, and of their calls."""
    calls = []

    def make(*_, **__):
        return SimpleNamespace(score=lambda *given: calls.append(given) or iter("ab"))

    return record(monkeypatch, system_module, "PairScorer", make), calls


def test_pairs_are_scored_with_every_part_of_the_system(system, scorers):
    made, calls = scorers
    assert system.score(["a", "b"], ["x", "y"], HPARAMS, print) == ["a", "b"]
    assert calls == [(["a", "b"], ["x", "y"], print)]
    assert made.call == {
        "model": "model",
        "tokenizers": (DIGITS, LETTERS),
        "problem": system.problem,
        "hparams": HPARAMS,
        "max_length": LONGEST,
    }


def test_a_system_is_shown_with_its_checkpoint_set_and_problem(folder, loading):
    system = System.load(folder)
    name = system.run.hparams_set
    assert repr(system) == (
        f"<System path of the checkpoint, {name}, algorithmic_reverse>"
    )


def test_the_names_that_are_imported_on_first_use_are_listed():
    assert set(runs.__all__) <= set(dir(runs))
    for name in runs.__all__:
        assert getattr(runs, name).__name__ == name


def test_equal_settings_share_a_scorer_and_the_problem_has_defaults(system, scorers):
    made, _ = scorers
    first = system.scorer()
    assert system.scorer(DecodeHParams()) is first
    assert system.scorer(HPARAMS) is not first
    expected = DecodeHParams(alpha=0.3, extra_length=7, batch_size=555)
    assert made.calls[0]["hparams"] == expected


@pytest.fixture
def exported(monkeypatch):
    served = record(monkeypatch, served_translator, "ServedTranslator", "served")
    return served, record(monkeypatch, saved_model_export, "export_saved_model")


def test_an_export_has_every_part_of_the_system(system, exported, tmp_path):
    served, written = exported
    path = system.export(str(tmp_path / "export"), HPARAMS, 777)
    assert path == tmp_path / "export"
    assert served.call == {
        "model": "model",
        "source_tokenizer": DIGITS,
        "target_tokenizer": LETTERS,
        "hparams": HPARAMS,
        "max_input_length": LONGEST,
        "max_source_tokens": 777,
        "problem": system.problem,
    }
    assert written.call["served"] == "served"
    assert Path(written.call["export_dir"]) == tmp_path / "export"


def test_an_export_refuses_to_compare_texts(system):
    with pytest.raises(UsageError, match=r"mbr_scale=0\.5, expected 0"):
        system.export("folder", HPARAMS.replace(mbr_scale=0.5))


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"mbr_scale": 0.5}, r"mbr_scale=0\.5, expected 0"),
        ({"beam_size": 1, "sampling_method": "random"}, "expected argmax"),
    ],
)
def test_an_export_refuses_what_the_problem_prefers_by_default(
    system, monkeypatch, own, message
):
    monkeypatch.setattr(system.problem, "decode_defaults", own, raising=False)
    with pytest.raises(UsageError, match=message):
        system.export("folder")


def test_an_export_searches_as_the_problem_prefers_by_default(system, exported):
    system.export("folder")
    expected = DecodeHParams(alpha=0.3, extra_length=7, batch_size=555)
    assert exported[0].call["hparams"] == expected


@pytest.fixture
def converted(system, monkeypatch, tmp_path):
    """Record an export for CTranslate2 and what comes before it."""
    monkeypatch.chdir(tmp_path)
    system.run = make_run(
        hparams=catalogue.hparams("transformer_tiny").parse(f"max_length={LONGEST}"),
        hparams_set="the set",
        problem="the problem",
        data_dir="the data",
    )
    steps = []
    parity = SimpleNamespace(check=lambda limits: steps.append(("check", limits)))
    export = SimpleNamespace(
        write_weights=lambda: steps.append("write"),
        measure=lambda sources: steps.append(("measure", sources)) or parity,
        describe=lambda found: steps.append(("describe", found is parity)),
    )
    return {
        "checked": record(monkeypatch, ctranslate2_export, "check_exportable"),
        "text": record(
            monkeypatch, ctranslate2_export, "comparison_sentences", ["A dev TEXT"]
        ),
        "export": record(monkeypatch, ctranslate2_export, "_Export", export),
        "steps": steps,
        "parity": parity,
    }


def test_an_export_for_ctranslate2_has_every_part_of_the_system(system, converted):
    found = system.export_ctranslate2(
        "folder", HPARAMS, quantization="int8", sentences=["ONE", "Two"]
    )
    assert found is converted["parity"]
    assert converted["checked"].call == {
        "model": system.run.model,
        "hparams": system.run.hparams,
        "export_dir": "folder",
        "quantization": "int8",
    }
    call = converted["export"].call
    assert call.pop("folder").name.startswith("folder")
    assert call == {"system": system, "hparams": HPARAMS, "quantization": "int8"}
    # The problem's form of the sources; nothing is described before it is checked.
    steps = [
        "write",
        ("measure", ["one", "two"]),
        ("check", "int8"),
        ("describe", True),
    ]
    assert converted["steps"] == steps
    assert converted["text"].calls == []


def test_an_export_for_ctranslate2_is_compared_on_the_dev_text(system, converted):
    system.export_ctranslate2("folder")
    assert converted["text"].call == {"data_dir": "the data", "problem": system.problem}
    assert ("measure", ["a dev text"]) in converted["steps"]
    call = converted["export"].call
    assert call["quantization"] == "float32"
    expected = DecodeHParams(alpha=0.3, extra_length=7, batch_size=555)
    assert call["hparams"] == expected


def test_a_grammar_is_refused_before_an_export_for_ctranslate2(system, converted):
    with pytest.raises(UsageError, match="constrain not supported by the engine"):
        system.export_ctranslate2("folder", DecodeHParams(constrain="tree"))
    assert converted["export"].calls == []


@pytest.mark.parametrize(
    ("problem", "is_warned"), [(Shouting(), True), (Problem(), False)]
)
def test_an_export_of_raw_output_is_reported(
    system, exported, caplog, problem, is_warned
):
    caplog.set_level(logging.INFO, "t2t_repro")
    system.problem = problem
    system.export("folder")
    assert ("raw output" in caplog.text) == is_warned
    assert ("`normalize_source`" in caplog.text) == is_warned


@pytest.mark.parametrize(
    ("problem", "is_refused"), [(Shouting(), False), (Problem(), True)]
)
def test_preferring_unrepaired_outputs_needs_a_problem_that_repairs(
    system, problem, is_refused
):
    system.problem = problem
    given = DecodeHParams(prefer_unrepaired=True)
    if is_refused:
        with pytest.raises(UsageError, match="prefer_unrepaired would have no effect"):
            system.with_problem_defaults(given)
    else:
        assert system.with_problem_defaults(given).prefer_unrepaired


@pytest.mark.parametrize(("size", "is_refused"), [(47, True), (48, False)])
def test_a_batch_holds_at_least_the_longest_source(system, size, is_refused):
    given = DecodeHParams(batch_size=size)
    if is_refused:
        with pytest.raises(UsageError, match="received batch_size=47, expected"):
            system.with_problem_defaults(given)
    else:
        assert system.with_problem_defaults(given).batch_size == 48


def test_a_default_batch_may_be_smaller_than_the_longest_source(system):
    assert system.with_problem_defaults(DecodeHParams()).batch_size == 555
    system.run.hparams.max_length = 5_000
    assert system.with_problem_defaults(DecodeHParams()).batch_size == 555


def test_a_problem_may_have_a_small_default_batch(system):
    system.problem.decode_defaults = {"batch_size": 3}
    completed = system.with_problem_defaults(DecodeHParams())
    assert completed.batch_size == 3
    # As `t2t evaluate` and `t2t train` do.
    assert system.with_problem_defaults(completed) == completed


@pytest.fixture
def checkpoints(monkeypatch):
    """Return a folder of checkpoints by name, which `find_checkpoint` reads."""
    found = {"latest": "model.ckpt-60", "averaged": "averaged/model.ckpt-60"}

    def find(output_dir, which="latest"):
        assert output_dir == "folder"
        if which not in found:
            raise UserError(f"no {which}")
        return found[which]

    monkeypatch.setattr(run_checkpoints, "find_checkpoint", find)
    return found


def chosen(which=None):
    return run_checkpoints.choose_checkpoint("folder", which)


def test_a_named_checkpoint_is_found_without_a_message(checkpoints, caplog):
    caplog.set_level(logging.INFO, "t2t_repro")
    checkpoints["best"] = "best/model.ckpt-20"
    assert chosen("best") == "best/model.ckpt-20"
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (61, "averaged/model.ckpt-61"),
        (60, "averaged/model.ckpt-60"),
        (59, "model.ckpt-60"),
    ],
)
def test_the_average_is_the_default_if_it_is_as_new_as_the_latest(
    checkpoints, caplog, step, expected
):
    caplog.set_level(logging.INFO, "t2t_repro")
    checkpoints["averaged"] = f"averaged/model.ckpt-{step}"
    assert chosen() == expected
    assert caplog.messages == [f"using checkpoint {expected}"]


def test_the_latest_is_the_default_without_an_average(checkpoints):
    del checkpoints["averaged"]
    assert chosen() == "model.ckpt-60"


class Rewriting(Shouting):
    """A problem whose targets the model writes in another form."""

    def encode_target(self, target):
        return target.upper()


@pytest.fixture
def captured(system, monkeypatch, translators):
    system.problem = Rewriting()
    return {
        "source": record(monkeypatch, capture, "encode_source", "source ids"),
        "target": record(monkeypatch, capture, "encode_target", "target ids"),
        "attention": record(monkeypatch, capture, "capture_attention", "attention"),
    }


def test_attention_is_that_of_the_given_translation(system, captured):
    assert system.attention("Ein SATZ", "a target") == "attention"
    assert [*captured["source"].call.values()] == [DIGITS, "ein satz", LONGEST]
    assert [*captured["target"].call.values()] == [LETTERS, "A TARGET", LONGEST]
    call = captured["attention"].call
    assert (call["model"], call["tokenizers"]) == ("model", (DIGITS, LETTERS))
    assert (call["source_ids"], call["target_ids"]) == ("source ids", "target ids")


def test_attention_is_that_of_the_systems_own_translation(
    system, captured, monkeypatch, translators
):
    best = Hypothesis("text", -1.0, ids=(3, 4, 1))
    worse = Hypothesis("worse", -2.0, ids=(5,))
    asked = []
    translator = SimpleNamespace(
        translate=lambda sentences: asked.append(sentences) or [[best, worse]]
    )
    made = record(monkeypatch, system_module, "Translator", translator)
    system.attention("Ein SATZ", decode_hparams=HPARAMS)
    assert asked == [["Ein SATZ"]]
    assert made.call["hparams"] == HPARAMS
    assert captured["attention"].call["target_ids"] == (3, 4, 1)
    assert captured["target"].calls == []


def test_a_grammar_is_followed_where_the_problem_prefers_it(system):
    assert system.with_problem_defaults(DecodeHParams()).constrain == "none"
    system.problem.decode_defaults = {"constrain": "tree"}
    assert system.with_problem_defaults(DecodeHParams()).constrain == "tree"
    given = DecodeHParams().parse("constrain=none")
    assert system.with_problem_defaults(given).constrain == "none"
    system.follows_grammar = False
    assert system.with_problem_defaults(DecodeHParams()).constrain == "none"


def test_a_default_grammar_is_left_out_where_the_problem_has_none(system):
    class Constrained(Problem):
        decode_defaults = {"constrain": "tree", "alpha": 0.3}  # noqa: RUF012

        def target_grammar(self, tokenizer):
            return "grammar of", tokenizer

    system.problem = Constrained()
    assert system.with_problem_defaults(DecodeHParams()).constrain == "tree"
    system.problem = ReversedProblem(system.problem)
    found = system.with_problem_defaults(DecodeHParams())
    assert (found.constrain, found.alpha) == ("none", 0.3)


def test_a_preference_has_no_effect_inside_a_grammar(system):
    given = DecodeHParams().parse("prefer_unrepaired=true")
    assert system.with_problem_defaults(given).prefer_unrepaired
    system.problem.decode_defaults = {"constrain": "tree"}
    with pytest.raises(UsageError, match="prefer_unrepaired would have no effect"):
        system.with_problem_defaults(given)


def test_no_preference_is_harmless_inside_a_grammar(system):
    given = DecodeHParams().parse("constrain=tree,prefer_unrepaired=false")
    found = system.with_problem_defaults(given)
    assert (found.constrain, found.prefer_unrepaired) == ("tree", False)


def test_a_problem_without_a_grammar_is_not_constrained(system):
    system.problem = Problem()
    given = DecodeHParams().parse("constrain=tree")
    with pytest.raises(UsageError, match="problem has no grammar: leave it out"):
        system.with_problem_defaults(given)


def test_a_problem_that_cannot_combine_outputs_has_no_consensus(system):
    given = DecodeHParams().parse("mbr_scale=1,mbr_consensus=true")
    with pytest.raises(UsageError, match=r"outputs of .* cannot be combined: leave"):
        system.with_problem_defaults(given)
    system.problem = catalogue.problem("parsing_ptb")
    assert system.with_problem_defaults(given).mbr_consensus


def test_a_cost_of_words_belongs_to_a_grammar(system):
    system.problem.decode_defaults = {"constrain": "tree", "word_cost": 0.7}
    completed = system.with_problem_defaults(DecodeHParams())
    assert (completed.constrain, completed.word_cost) == ("tree", 0.7)
    plain = DecodeHParams().parse("constrain=none")
    assert system.with_problem_defaults(plain).word_cost == 0
    other = with_problem_defaults(
        DecodeHParams(), system.problem, LONGEST, follows_grammar=False
    )
    assert (other.constrain, other.word_cost) == ("none", 0)


@pytest.mark.parametrize(
    "given", [DecodeHParams(word_cost=0.5), DecodeHParams().parse("word_cost=0.5")]
)
def test_a_cost_of_words_needs_a_grammar(system, given):
    with pytest.raises(UsageError, match="word_cost would have no effect: constrain"):
        system.with_problem_defaults(given)
    system.problem.decode_defaults = {"constrain": "tree"}
    assert system.with_problem_defaults(given).word_cost == 0.5
