"""Every setting reaches the object that reads it, with a distinct value."""

from __future__ import annotations

import dataclasses
import json
import logging
from types import SimpleNamespace

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

from t2t_repro import catalogue, registry
from t2t_repro.data.pipeline import BatchPlan
from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.attention_view import attention_summaries
from t2t_repro.layers import MultiHeadAttention
from t2t_repro.runs import DecodeHParams, TrainSettings, evaluators, run_training
from t2t_repro.runs.training_config import TrainingConfig
from t2t_repro.settings.hparams import HParams
from t2t_repro.training.metrics_log import MetricsLog
from tests.support.recorder import record, spy
from tests.support.trained_system import prepared_text

HPARAMS = (
    "hidden_size=32,filter_size=48,num_heads=2,num_hidden_layers=1,batch_size=520,"
    "max_length=40,min_length_bucket=13,length_bucket_step=1.7,"
    "label_smoothing=0.17,clip_grad_norm=3.5,learning_rate_warmup_steps=21"
)
SETTINGS = {
    "hparams_set": "transformer_tiny",
    "hparams": HPARAMS,
    "random_seed": 11,
    "train_steps": 170,
    "eval_sentences": 5,
    "bleu_tokenizer": "intl",
    "keep_checkpoint_max": 2,
    "average_last": 6,
    "xla": "off",
    "deterministic": True,
}
DROPOUT = "layer_prepostprocess_dropout=0.1"
BOUNDARIES = (13, 22, 37, 40)
ROWS = tuple(520 // length for length in BOUNDARIES)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return prepared_text(tmp_path_factory.mktemp("wiring"), drop_duplicates=False)


class Training:
    """Trainings whose trainer does not train, and what they hand on."""

    def __init__(self, monkeypatch, data, folder):
        self.data, self.folder = data, folder

        class Trainer:
            stop_signal = None
            stopped_early = False

            def __init__(trainer, **arguments):
                self.arguments = arguments
                trainer.log = MetricsLog(arguments["settings"].output_dir)

            def train(self):
                return 0

        monkeypatch.setattr(run_training, "Trainer", Trainer)
        translator = SimpleNamespace(count_cut=lambda sentences: 0)
        self.seeds = record(monkeypatch, run_training, "make_repeatable")
        self.translator = record(monkeypatch, evaluators, "Translator", translator)
        self.scored = spy(monkeypatch, evaluators, "translation_evaluator")
        self.dev = spy(monkeypatch, evaluators, "evaluation_batches")

    def settings(self, hparams="", **changes):
        own = {"hparams": ",".join(filter(None, (HPARAMS, hparams)))}
        return TrainSettings(output_dir=self.folder, **(SETTINGS | own | changes))

    def run(self, hparams="", data=None, show_progress=False, **changes):
        settings = self.settings(hparams, **changes)
        run_training.train(settings, data or self.data, show_progress=show_progress)
        return SimpleNamespace(**self.arguments)


@pytest.fixture
def trained(monkeypatch, data, tmp_path):
    return Training(monkeypatch, data, tmp_path / "run")


def test_the_trainer_has_everything_that_the_settings_ask_for(trained):
    made = trained.run()
    assert made.settings == trained.settings()
    assert (made.metric, made.show_progress) == ("bleu", False)
    assert made.data.shards == trained.data.shards("train")
    assert made.data.plan == BatchPlan(BOUNDARIES, ROWS)
    # By likelihood, translation and attention
    assert (len(made.evaluators), made.log.monitors) == (3, [])
    options = made.step_options
    assert (options.label_smoothing, options.clip_grad_norm) == (0.17, 3.5)
    assert trained.seeds.call == {"seed": 11, "deterministic": True}
    assert trained.run(show_progress=True).show_progress


def test_the_dev_split_is_evaluated(trained, caplog, monkeypatch):
    caplog.set_level(logging.INFO, "t2t_repro")
    problem = trained.data.problem
    own = {"beam_size": 9, "alpha": 0.3, "batch_size": 99}
    monkeypatch.setattr(type(problem), "decode_defaults", own, raising=False)
    trained.run()
    assert trained.dev.call["shards"] == trained.data.shards("dev")
    assert trained.dev.call["plan"] == BatchPlan(BOUNDARIES, ROWS)
    call, scored = trained.translator.call, trained.scored.call
    # The problem's batch size is meant for its beam.
    assert call["hparams"].values() == DecodeHParams(beam_size=1, alpha=0.3).values()
    assert call["max_input_length"] == 40
    assert call["problem"] is scored["problem"]
    assert scored["problem"].bleu_tokenizer == "intl"
    sources, references = trained.data.raw_text("dev")
    assert (scored["sources"], scored["references"]) == (sources[:5], references[:5])
    (line,) = [line for line in caplog.messages if "greedy" in line]
    assert line.startswith("bleu during training: 5 dev sentences, greedy search")
    assert "beam_size=9" in line


def test_without_dev_sentences_only_the_likelihood_is_evaluated(trained):
    made = trained.run(eval_sentences=0, attention_samples=0)
    assert len(made.evaluators) == 1
    assert trained.translator.calls == []


def test_without_a_dev_split_nothing_is_evaluated(trained):
    splits = {"train": trained.data.manifest.splits["train"]}
    manifest = dataclasses.replace(trained.data.manifest, splits=splits)
    made = trained.run(data=dataclasses.replace(trained.data, manifest=manifest))
    assert made.evaluators == []
    assert trained.dev.calls == []


def test_branch_weights_are_watched_if_there_are_branches(trained):
    assert len(trained.run("branched_attention=split").log.monitors) == 1


def test_a_training_that_ends_before_its_second_passes_is_told_so(trained, caplog):
    trained.run(f"{DROPOUT},rdrop_weight=2,rdrop_after_steps=170")
    assert "rdrop_after_steps=170, expected fewer than train_steps=170" in caplog.text


def test_a_model_that_mixes_the_pairs_of_a_row_is_refused(trained, monkeypatch):
    assert trained.run("packed_length=300").data.plan.packed_length == 300
    monkeypatch.setattr(run_training, "Transformer", SimpleNamespace)
    with pytest.raises(UserError, match="received packed_length=300 for the model"):
        trained.run("packed_length=300")


def test_an_attention_that_forgets_the_weights_of_its_base_is_named(trained):
    class Forgetful(MultiHeadAttention):
        def build(self, input_shape=None):
            self.scale = self.add_weight(name="scale", shape=(1,))

    answer = r"attention forgetful .*test_training.py.* must call `super\(\)\.build\("
    with registry.attentions.isolated():
        registry.register_attention("forgetful")(Forgetful)
        with pytest.raises(UserError, match=answer):
            trained.run("self_attention_type=forgetful")


def test_attention_that_hides_its_weights_is_trained_without_pictures(trained, caplog):
    class Silent(MultiHeadAttention):
        def call(self, query, memory, attention_mask=None, training=None):
            key, value = self.project_memory(memory)
            weights = self.weights_of(query, key, attention_mask)
            return self.merge(weights @ value, training)

    caplog.set_level(logging.INFO, "t2t_repro")
    with registry.attentions.isolated():
        registry.register_attention("silent")(Silent)
        made = trained.run("self_attention_type=silent")
    assert "no attention: Silent does not show its attention weights" in caplog.text
    assert len(made.evaluators) == 2


@pytest.mark.parametrize("attention_samples", [0, 2, 1000])
def test_attention_is_written_as_requested(trained, monkeypatch, attention_samples):
    made = []
    monkeypatch.setattr(
        attention_summaries, "attention_evaluator", lambda *args, **_: made.append(args)
    )
    trained.run(attention_samples=attention_samples)
    tokenizers = trained.data.tokenizers()
    written = [pairs for _, _, pairs in made]
    expected = [
        tuple(
            [*tokenizer.encode(text), 1]
            for tokenizer, text in zip(tokenizers, pair, strict=True)
        )
        for pair in zip(*trained.data.raw_text("dev"), strict=True)
    ]
    # The longest dev sentences do not fit into max_length.
    expected = [pair for pair in expected if max(map(len, pair)) <= 40]
    assert written == ([expected[:attention_samples]] if attention_samples else [])


def test_a_new_run_is_described_for_people_and_for_tensorboard(trained):
    trained.run()
    described = json.loads((trained.folder / "hparams.json").read_text())
    assert described["hparams"]["filter_size"] == 48
    assert described["hparams"]["origins"]["filter_size"] == HParams.flag
    accumulator = EventAccumulator(str(trained.folder / "eval")).Reload()
    (content,) = accumulator.summary_metadata.values()
    started = HParamsPluginData.FromString(content.plugin_data.content)
    values = started.session_start_info.hparams
    # the hparams that the user chose
    changed = {setting.partition("=")[0] for setting in HPARAMS.split(",")}
    assert set(values) == {"hparams_set", "problem", "random_seed"} | changed
    assert values["hparams_set"].string_value == "transformer_tiny"
    assert values["filter_size"].number_value == 48


@pytest.mark.parametrize(("keep", "average", "kept"), [(2, 6, 6), (8, 3, 8)])
def test_enough_checkpoints_are_kept_to_average(keep, average, kept):
    changed = SETTINGS | {"keep_checkpoint_max": keep, "average_last": average}
    assert TrainSettings(output_dir="", **changed).checkpoints_to_keep == kept


@pytest.mark.parametrize(
    ("train_steps", "expected"), [(30, 10), (31, 11), (2999, 1000), (9000, 1000)]
)
def test_a_third_of_the_steps_lies_between_two_evaluations(train_steps, expected):
    settings = TrainSettings(
        output_dir="o", hparams_set="transformer_tiny", train_steps=train_steps
    )
    assert settings.steps_between_evaluations == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"train_steps": 4999}, 50),
        ({"train_steps": 20_000}, 200),
        ({"train_steps": 20_000, "save_checkpoints_secs": 60.0}, 0),
        ({"save_checkpoints_steps": 7, "save_checkpoints_secs": 60.0}, 7),
        ({"save_checkpoints_steps": 0}, 0),
    ],
)
def test_a_hundredth_of_the_steps_lies_between_two_checkpoints(changes, expected):
    settings = TrainSettings(output_dir="o", hparams_set="transformer_tiny", **changes)
    assert settings.steps_between_checkpoints == expected


def test_rows_of_several_pairs_are_for_training_only():
    hparams = catalogue.hparams("transformer_tiny").replace(
        max_length=40, packed_length=50, batch_size=210
    )
    plan = BatchPlan.for_training(hparams, 3)
    assert plan == BatchPlan((40,), (12,), packed_length=50)
    assert plan.shapes == [(12, 50)]
    assert plan.packed_lengths == (50, 50)
    narrow = BatchPlan.for_training(hparams.replace(packed_source_length=45), 3)
    assert narrow.packed_lengths == (45, 50)
    assert BatchPlan.for_evaluation(hparams).packed_length == 0


def test_an_update_of_several_steps_has_their_rows_and_their_number(trained):
    made = trained.run("update_tokens=1560")
    assert made.data.plan.rows == tuple(3 * rows for rows in ROWS)
    assert made.step_options.micro_batches == 3


@pytest.mark.parametrize(
    ("hparams", "replicas", "answer"),
    [
        ("update_tokens=39", 1, "1 replica x 39 tokens x 1 micro-batch, expe"),
        ("update_tokens=79", 2, "2 replicas x 39 tokens x 1 micro-batch, exp"),
    ],
)
def test_an_update_that_leaves_no_room_for_a_sentence_leaves_the_folder_alone(
    trained, monkeypatch, hparams, replicas, answer
):
    (trained.folder / "notes").mkdir(parents=True)
    strategy = SimpleNamespace(num_replicas_in_sync=replicas)
    monkeypatch.setattr(run_training, "make_strategy", lambda *_: strategy)
    settings, problem = trained.settings(hparams), trained.data.problem
    if replicas == 1:  # known before data is prepared
        with pytest.raises(UsageError, match=answer):
            TrainingConfig.from_settings(settings, problem)
    with pytest.raises(UsageError, match=answer):
        trained.run(hparams)
    assert [path.name for path in trained.folder.iterdir()] == ["notes"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("save_checkpoints_secs", 600.0), ("early_stopping_patience", 2)],
)
def test_settings_that_workers_could_not_decide_alike_are_refused(name, value):
    settings = TrainSettings(
        output_dir="", hparams_set="transformer_tiny", **{name: value}
    )
    run_training._check_for_workers(settings, SimpleNamespace(count=1))
    with pytest.raises(UsageError, match=f"received {name}={value} and 2 workers"):
        run_training._check_for_workers(settings, SimpleNamespace(count=2))
