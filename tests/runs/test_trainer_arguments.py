"""Everything that trains a model receives its own setting; all values differ."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from types import SimpleNamespace

import pytest

from t2t_repro import catalogue
from t2t_repro.data.pipeline import BatchPlan, Shards
from t2t_repro.data.problem import Problem
from t2t_repro.errors import UserError
from t2t_repro.runs import (
    DecodeHParams,
    TrainSettings,
    evaluators,
    trainer,
)
from t2t_repro.runs.prepared_training import PreparedTraining
from t2t_repro.training import step
from t2t_repro.training.step import StepOptions
from tests.support.recorder import record

HPARAMS = {
    "batch_size": 520,
    "max_length": 40,
    "min_length_bucket": 13,
    "length_bucket_step": 1.7,
    "label_smoothing": 0.17,
    "clip_grad_norm": 3.5,
}
SETTINGS = TrainSettings(
    output_dir="folder",
    hparams_set="transformer_tiny",
    random_seed=11,
    train_steps=170,
    log_step_count_steps=3,
    local_eval_frequency=7,
    eval_sentences=2,
    bleu_tokenizer="intl",
    save_checkpoints_steps=9,
    save_checkpoints_secs=4000.0,
    keep_checkpoint_max=19,
    average_last=6,
    xla="off",
    deterministic=True,
)
REPLICAS = 3
SOURCES, REFERENCES = ["one", "two", "three"], ["eins", "zwei", "drei"]


class Chess(Problem):
    """A problem whose metric and search are unlike the defaults."""

    metric = "elo"
    decode_defaults = {  # noqa: RUF012
        "beam_size": 9,
        "alpha": 0.3,
        "extra_length": 7,
        "batch_size": 99,
        "constrain": "tree",
    }

    def target_grammar(self, tokenizer):
        return f"grammar of {tokenizer}"


class Strategy:
    """A strategy of several replicas that knows whether its scope is open."""

    num_replicas_in_sync = REPLICAS
    is_open = False

    @contextlib.contextmanager
    def scope(self):
        self.is_open = True
        yield
        self.is_open = False


class Optimizer:
    """An optimizer that records the variables that it is built on."""

    def build(self, variables):
        self.variables = variables


@dataclasses.dataclass
class Made:
    """The trainer's arguments, and the calls that made them."""

    arguments: dict
    calls: dict
    run: SimpleNamespace
    data: SimpleNamespace
    strategy: Strategy
    model: SimpleNamespace
    optimizer: Optimizer
    order: list


@pytest.fixture
def make(monkeypatch):
    """Return a function that calls `make_trainer` and records all hand-overs."""

    def made(settings=SETTINGS, splits=("train", "dev", "test"), **hparams):
        strategy, order, optimizer = Strategy(), [], Optimizer()
        model = SimpleNamespace(
            trainable_variables=["weights"], count_params=lambda: 1234
        )

        def under_scope(name, value):
            def make_it(*arguments, **named):
                order.append((name, strategy.is_open, *arguments, *named.items()))
                return value

            return make_it

        run = SimpleNamespace(
            hparams=catalogue.hparams("transformer_tiny").replace(
                **(HPARAMS | hparams)
            ),
            build_model=under_scope("model", model),
            hparams_set="the set",
            model="the model",
            problem="the problem",
            num_replicas=REPLICAS,
        )
        data = SimpleNamespace(
            tokenizers=lambda: ("source", "target"),
            shards=lambda split: Shards((split,)),
            raw_text=lambda split: (
                [f"{split} {line}" for line in SOURCES],
                [f"{split} {line}" for line in REFERENCES],
            ),
            splits=splits,
            problem=Chess(),
            manifest=SimpleNamespace(splits={}),
        )
        names = {
            "Trainer": None,
            "branch_monitor": "monitor",
            "warn_of_unlikely_dev": None,
        }
        of_evaluators = {
            "evaluation_batches": "dev batches",
            "likelihood_evaluator": "likelihood",
            "Translator": "translator",
            "translation_evaluator": "translation",
        }
        calls = {
            name: record(monkeypatch, module, name, result).calls
            for module, recorded in ((trainer, names), (evaluators, of_evaluators))
            for name, result in recorded.items()
        }
        for name, value in (("make_repeatable", None), ("make_optimizer", optimizer)):
            monkeypatch.setattr(trainer, name, under_scope(name, value))
        training = PreparedTraining(
            settings, data.problem, run.hparams, DecodeHParams(), None, None
        )
        trainer.make_trainer(training, run, data, strategy)
        (arguments,) = calls["Trainer"]
        return Made(arguments, calls, run, data, strategy, model, optimizer, order)

    return made


def test_the_trainer_gets_the_objects_that_were_made_for_it(make):
    made = make()
    expected = {
        "model": made.model,
        "optimizer": made.optimizer,
        "strategy": made.strategy,
        "settings": SETTINGS,
        "metric": "elo",
        "evaluators": ["likelihood", "translation"],
        "monitors": [],
    }
    assert {name: made.arguments[name] for name in expected} == expected


def test_the_seed_is_set_before_the_model_is_built_in_the_scope_of_the_replicas(make):
    made = make()
    assert made.order == [
        ("make_repeatable", False, 11, ("deterministic", True)),
        ("model", True, "source", "target"),
        ("make_optimizer", True, made.run.hparams, SETTINGS.train_steps),
    ]
    assert made.optimizer.variables == ["weights"]


def test_every_option_of_the_step_has_its_hparam(make):
    made = make(rdrop_weight=2.5, rdrop_after_steps=60)
    assert made.arguments["step_options"] == StepOptions(
        label_smoothing=0.17,
        clip_grad_norm=3.5,
        jit_compile=False,
        rdrop_weight=2.5,
        rdrop_after_steps=60,
    )


def test_packed_rows_have_their_plan_and_their_features(make, monkeypatch):
    monkeypatch.setattr(trainer, "Transformer", SimpleNamespace)
    settings = SETTINGS.replace(attention_samples=0)
    packed = make(settings, packed_length=300).arguments
    assert packed["data"].plan.packed_length == 300


def test_a_model_that_mixes_the_pairs_of_a_row_is_refused(make):
    with pytest.raises(UserError, match="received packed_length=300 for the model"):
        make(packed_length=300)


@pytest.mark.parametrize(
    ("xla", "is_wise", "compiled", "products"),
    [
        ("on", False, True, True),
        ("on", True, True, True),
        ("fusible", False, True, False),
        ("off", True, False, True),
        ("off", False, False, True),
        ("auto", True, True, True),
        ("auto", False, False, True),
    ],
)
def test_xla_is_used_as_requested_or_if_it_is_wise(
    make, monkeypatch, xla, is_wise, compiled, products
):
    asked = []
    monkeypatch.setattr(
        step, "should_use_xla", lambda strategy: asked.append(strategy) or is_wise
    )
    made = make(SETTINGS.replace(xla=xla))
    options = made.arguments["step_options"]
    assert (options.jit_compile, options.jit_products) == (compiled, products)
    assert asked == ([made.strategy] if xla == "auto" else [])


@pytest.mark.parametrize(
    ("dtype", "products"), [("bfloat16", False), ("float32", True)]
)
def test_bfloat16_products_are_left_to_tensorflow(make, monkeypatch, dtype, products):
    monkeypatch.setattr(step, "multiplies_bfloat16", lambda: True)
    monkeypatch.setattr(step.tf.config, "get_visible_devices", lambda kind: [])
    made = make(SETTINGS.replace(xla="auto"), activation_dtype=dtype)
    assert made.arguments["step_options"].jit_products is products


BOUNDARIES = (13, 22, 37, 40)


def test_training_batches_are_those_of_the_hparams_for_every_replica(make):
    data = make().arguments["data"]
    rows = tuple(REPLICAS * (520 // length) for length in BOUNDARIES)
    assert data.shards == Shards(("train",))
    assert data.plan == BatchPlan(BOUNDARIES, rows)


def test_dev_batches_are_those_of_the_hparams_for_one_replica(make):
    made = make()
    rows = tuple(520 // length for length in BOUNDARIES)
    assert made.calls["evaluation_batches"] == [
        {"shards": Shards(("dev",)), "plan": BatchPlan(BOUNDARIES, rows)}
    ]
    assert made.calls["likelihood_evaluator"] == [
        {"model": made.model, "batches": "dev batches"}
    ]


def test_dev_sentences_are_translated_greedily_with_the_problems_other_settings(make):
    made = make()
    (call,) = made.calls["Translator"]
    hparams = call.pop("hparams")
    (scored,) = made.calls["translation_evaluator"]
    problem = scored["problem"]
    assert call == {
        "model": made.model,
        "source_tokenizer": "source",
        "target_tokenizer": "target",
        "max_input_length": 40,
        "problem": problem,
    }
    # The batch size is the general default: the problem's is meant for its beam.
    given = {"beam_size": 1, "alpha": 0.3, "extra_length": 7, "batch_size": 2048}
    given["constrain"] = "tree"
    assert hparams.values() == DecodeHParams().values() | given


def test_only_the_requested_number_of_dev_sentences_is_translated(make):
    made = make()
    (call,) = made.calls["translation_evaluator"]
    problem = call.pop("problem")
    assert type(problem) is type(made.data.problem)
    assert problem.bleu_tokenizer == "intl"
    assert call == {
        "translator": "translator",
        "sources": ["dev one", "dev two"],
        "references": ["dev eins", "dev zwei"],
    }


def test_without_dev_sentences_only_the_likelihood_is_evaluated(make):
    made = make(SETTINGS.replace(eval_sentences=0))
    assert made.arguments["evaluators"] == ["likelihood"]
    assert made.calls["Translator"] == []


def test_without_a_dev_split_nothing_is_evaluated(make):
    made = make(splits=("train", "test"))
    assert made.arguments["evaluators"] == []
    assert made.calls["evaluation_batches"] == []


@pytest.mark.parametrize(
    ("branched", "monitors"), [("none", []), ("split", ["monitor"])]
)
def test_branch_weights_are_watched_if_there_are_branches(make, branched, monitors):
    made = make(branched_attention=branched)
    assert made.arguments["monitors"] == monitors
    calls = [{"model": made.model}] if monitors else []
    assert made.calls["branch_monitor"] == calls


@pytest.mark.parametrize("xla", ["on", "off"])
def test_the_summary_is_logged_before_training(make, caplog, xla):
    caplog.set_level(logging.INFO, "t2t_repro")
    make(SETTINGS.replace(xla=xla))
    assert caplog.messages[0] == "the set on the problem: 1,234 parameters"
    assert ("XLA compiles each once" in caplog.text) == (xla == "on")


def test_a_training_that_ends_before_its_second_passes_is_told_so(make, caplog):
    make(SETTINGS, rdrop_weight=2.0, rdrop_after_steps=170)
    assert "rdrop_after_steps=170, expected fewer than train_steps=170" in caplog.text
