"""Every setting reaches the object that reads it, with a distinct value."""

from __future__ import annotations

import dataclasses
import json
import logging
from pathlib import Path
from types import SimpleNamespace

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

from t2t_repro import catalogue, registry
from t2t_repro.data.pipeline import BatchPlan
from t2t_repro.data.prepare import prepare
from t2t_repro.data.request import PairFiles
from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.attention_view import attention_summaries
from t2t_repro.layers import MultiHeadAttention
from t2t_repro.runs import (
    TrainSettings,
    evaluators,
    train,
    trainer,
    training,
)
from t2t_repro.runs.prepared_training import PreparedTraining, resolved_hparams
from t2t_repro.settings.hparams import HParams
from t2t_repro.training.metrics_log import MetricsLog
from tests.support.trained_system import write_text

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
    "log_step_count_steps": 3,
    "local_eval_frequency": 7,
    "eval_sentences": 5,
    "bleu_tokenizer": "intl",
    "save_checkpoints_steps": 9,
    "save_checkpoints_secs": 4000.0,
    "keep_checkpoint_max": 2,
    "average_last": 6,
    "keep_best": 4,
    "early_stopping_patience": 8,
    "xla": "off",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wiring")
    text = write_text(folder)
    files = {
        split: PairFiles(text[split, "source"], text[split, "target"])
        for split in ("train", "dev", "test")
    }
    problem = catalogue.problem("text_pairs").with_files(files)
    settings = problem.prepare_settings.replace(vocab_size=350, drop_duplicates=False)
    return prepare(problem, folder / "data", settings=settings)


@dataclasses.dataclass
class Recorded:
    """The arguments of a trainer that does not train."""

    output_dir: Path
    arguments: dict = dataclasses.field(default_factory=dict)
    seeds: list = dataclasses.field(default_factory=list)
    translator: list = dataclasses.field(default_factory=list)


def record_training(patch, output_dir):
    """Replace the trainer, and record the arguments that `train` passes to it."""
    found = Recorded(output_dir)

    class Recorder:
        stop_signal = None
        stopped_early = False

        def __init__(self, **arguments):
            found.arguments = arguments
            self.log = MetricsLog(arguments["settings"].output_dir)

        def train(self):
            return 0

    class NoTranslator:
        def __init__(self, *arguments, **forms):
            found.translator.append(arguments)

        def count_cut(self, sentences):
            return 0

    patch.setattr(trainer, "Trainer", Recorder)
    patch.setattr(
        trainer,
        "make_repeatable",
        lambda seed, *, deterministic: found.seeds.append((seed, deterministic)),
    )
    patch.setattr(evaluators, "Translator", NoTranslator)
    return found


@pytest.fixture(scope="module")
def recorded(data, tmp_path_factory):
    """Return the arguments of the trainer in a training with `SETTINGS`."""
    folder = tmp_path_factory.mktemp("recorded") / "run"
    with pytest.MonkeyPatch.context() as patch:
        found = record_training(patch, folder)
        train(TrainSettings(output_dir=str(folder), **SETTINGS), data)
    return found


@pytest.fixture
def recording(tmp_path, monkeypatch):
    """Record the arguments of the trainer in the training runs of a test."""
    return record_training(monkeypatch, tmp_path / "run")


def test_the_trainer_has_the_settings_and_the_metric_of_the_problem(recorded):
    expected = TrainSettings(output_dir=str(recorded.output_dir), **SETTINGS)
    assert recorded.arguments["settings"] == expected
    assert recorded.arguments["metric"] == "bleu"


def test_dev_sources_are_translated_greedily_up_to_the_longest_length(recorded):
    ((_, _, _, decode_hparams, max_input_length),) = recorded.translator
    assert (decode_hparams.beam_size, max_input_length) == (1, 40)


def test_the_log_says_once_that_dev_scores_are_of_greedy_search(
    recording, data, tmp_path, caplog
):
    caplog.set_level(logging.INFO, "t2t_repro")
    train(TrainSettings(output_dir=str(tmp_path / "logged"), **SETTINGS), data)
    (line,) = [line for line in caplog.messages if "greedy" in line]
    assert line.startswith("bleu during training: 5 dev sentences, greedy search")
    assert "beam_size=4" in line


def test_the_seed_decides_weights_and_dropout(recorded):
    assert recorded.seeds == [(11, False)]


def test_every_step_option_comes_from_its_hparam(recorded):
    options = recorded.arguments["step_options"]
    assert (options.label_smoothing, options.clip_grad_norm) == (0.17, 3.5)
    assert options.jit_compile is False


def test_a_training_shows_its_progress_only_if_asked(
    recorded, recording, data, tmp_path
):
    assert recorded.arguments["show_progress"] is False
    settings = TrainSettings(output_dir=str(tmp_path / "shown"), **SETTINGS)
    train(settings, data, show_progress=True)
    assert recording.arguments["show_progress"] is True


@pytest.mark.parametrize(("keep", "average", "kept"), [(2, 6, 6), (8, 3, 8)])
def test_enough_checkpoints_are_kept_to_average(keep, average, kept):
    changed = SETTINGS | {"keep_checkpoint_max": keep, "average_last": average}
    assert TrainSettings(output_dir="", **changed).checkpoints_to_keep == kept


def test_an_attention_that_forgets_the_weights_of_its_base_is_named(data, tmp_path):
    class Forgetful(MultiHeadAttention):
        def build(self, input_shape=None):
            self.scale = self.add_weight(name="scale", shape=(1,))

    hparams = f"{HPARAMS},self_attention_type=forgetful"
    with registry.attentions.isolated():
        registry.register_attention("forgetful")(Forgetful)
        settings = TrainSettings(
            output_dir=str(tmp_path / "run"), **(SETTINGS | {"hparams": hparams})
        )
        answer = (
            r"attention forgetful .*test_training.py.* must call `super\(\)\.build\(\)"
        )
        with pytest.raises(UserError, match=answer):
            train(settings, data)


def test_an_attention_that_hides_its_weights_is_trained_without_pictures(
    recording, data, tmp_path, caplog
):
    class Silent(MultiHeadAttention):
        def call(self, query, memory, attention_mask=None, training=None):
            key, value = self.project_memory(memory)
            weights = self.weights_of(query, key, attention_mask)
            return self.merge(weights @ value, training)

    caplog.set_level(logging.INFO, "t2t_repro")
    hparams = f"{HPARAMS},self_attention_type=silent"
    with registry.attentions.isolated():
        registry.register_attention("silent")(Silent)
        settings = TrainSettings(
            output_dir=str(tmp_path / "silent"), **(SETTINGS | {"hparams": hparams})
        )
        train(settings, data)
    assert "no attention: Silent does not show its attention weights" in caplog.text
    assert len(recording.arguments["evaluators"]) == 2


def test_batches_have_the_shapes_of_the_hparams(recorded):
    plan = recorded.arguments["data"].plan
    assert plan.boundaries == (13, 22, 37, 40)
    assert plan.rows == tuple(520 // length for length in plan.boundaries)


def test_training_reads_the_training_split(recorded, data):
    assert recorded.arguments["data"].shards == data.shards("train")


def test_dev_is_evaluated_by_likelihood_translation_and_attention(recorded):
    assert len(recorded.arguments["evaluators"]) == 3


@pytest.mark.parametrize("attention_samples", [0, 2, 1000])
def test_attention_is_written_for_the_requested_dev_sentences(
    recording, data, tmp_path, monkeypatch, attention_samples
):
    made = []
    monkeypatch.setattr(
        attention_summaries, "attention_evaluator", lambda *args, **_: made.append(args)
    )
    settings = SETTINGS | {"attention_samples": attention_samples}
    train(TrainSettings(output_dir=str(tmp_path / "run"), **settings), data)
    tokenizers = data.tokenizers()
    written = [pairs for _, _, pairs in made]
    expected = [
        tuple(
            [*tokenizer.encode(text), 1]
            for tokenizer, text in zip(tokenizers, pair, strict=True)
        )
        for pair in zip(*data.raw_text("dev"), strict=True)
    ]
    # The longest dev sentences do not fit into max_length.
    expected = [pair for pair in expected if max(map(len, pair)) <= 40]
    assert written == ([expected[:attention_samples]] if attention_samples else [])


def test_a_new_run_writes_its_hparams_for_tensorboard(recorded):
    accumulator = EventAccumulator(str(recorded.output_dir / "eval")).Reload()
    (content,) = accumulator.summary_metadata.values()
    started = HParamsPluginData.FromString(content.plugin_data.content)
    values = started.session_start_info.hparams
    assert values["hparams_set"].string_value == "transformer_tiny"
    assert values["problem"].string_value == "text_pairs"
    assert values["random_seed"].number_value == 11
    assert values["filter_size"].number_value == 48


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


@pytest.mark.parametrize(
    ("name", "value"),
    [("train_steps", 0), ("random_seed", 2**32), ("xla", "maybe"), ("hparams", 3)],
)
def test_a_setting_out_of_range_is_refused(name, value):
    given = {"output_dir": "o", "hparams_set": "transformer_tiny", name: value}
    with pytest.raises(UserError, match=f"{name}: received"):
        TrainSettings(**given)


def test_the_settings_are_read_back_from_the_run(recorded):
    run = training.Run.load_existing(recorded.output_dir)
    settings = run.train_settings(recorded.output_dir)
    # Keeping and averaging are as given, and overrides are read back as text.
    expected = TrainSettings(output_dir=str(recorded.output_dir), **SETTINGS)
    assert settings.replace(hparams="") == expected.replace(hparams="")
    assert resolved_hparams(settings) == resolved_hparams(expected)


def test_the_runs_file_names_everything_needed_to_rebuild_it(recorded, data):
    described = json.loads((recorded.output_dir / "hparams.json").read_text())
    assert described["problem"] == "text_pairs"
    assert described["random_seed"] == 11
    assert described["data_digest"] == data.digest
    assert described["data_dir"] == str(data.folder.resolve())
    assert described["num_replicas"] == 1
    assert described["hparams"]["filter_size"] == 48
    assert described["hparams"]["origins"]["filter_size"] == HParams.flag


def test_an_unknown_set_is_a_usage_error(data, tmp_path):
    settings = TrainSettings(output_dir=str(tmp_path), hparams_set="transformer_tini")
    with pytest.raises(UsageError, match="Did you mean transformer_tiny"):
        train(settings, data)


def test_a_batch_smaller_than_a_sentence_is_refused_for_a_new_run(data, tmp_path):
    settings = TrainSettings(
        output_dir=tmp_path / "run",
        hparams_set="transformer_tiny",
        hparams="batch_size=5",
    )
    with pytest.raises(UsageError, match="received batch_size=5, expected at least"):
        train(settings, data)


def test_a_problem_that_is_not_registered_is_refused_before_training(data, tmp_path):
    class Unregistered(type(data.problem)):
        pass

    settings = TrainSettings(output_dir=tmp_path / "r", hparams_set="transformer_tiny")
    unknown = dataclasses.replace(data, problem=Unregistered())
    with pytest.raises(UsageError, match="unknown problem 'unregistered'"):
        train(settings, unknown)


def test_a_global_batch_has_the_rows_of_every_replica(recorded):
    hparams = training.Run.load_existing(recorded.output_dir).hparams
    single = recorded.arguments["data"].plan
    planned = BatchPlan.for_training(hparams, 3)
    assert planned.rows == tuple(3 * rows for rows in single.rows)


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


def test_an_update_of_several_steps_has_their_rows_and_their_number(
    recorded, recording, data, tmp_path
):
    single = recorded.arguments["data"].plan
    changes = SETTINGS | {"hparams": f"{HPARAMS},update_tokens=1560"}
    train(TrainSettings(output_dir=str(tmp_path / "large"), **changes), data)
    plan = recording.arguments["data"].plan
    assert plan.rows == tuple(3 * rows for rows in single.rows)
    assert recording.arguments["step_options"].micro_batches == 3


def test_an_update_that_leaves_no_room_for_a_sentence_is_refused(
    recording, data, tmp_path
):
    changes = SETTINGS | {"hparams": f"{HPARAMS},update_tokens=39"}
    with pytest.raises(UsageError, match="1 replica x 39 tokens x 1 micro-batch, expe"):
        train(TrainSettings(output_dir=str(tmp_path / "small"), **changes), data)


def test_an_update_too_small_for_the_replicas_leaves_the_folder_alone(
    recording, data, tmp_path, monkeypatch
):
    folder = tmp_path / "small"
    (folder / "notes").mkdir(parents=True)
    two = SimpleNamespace(num_replicas_in_sync=2)
    monkeypatch.setattr(training, "make_strategy", lambda *_: two)
    changes = SETTINGS | {"hparams": f"{HPARAMS},update_tokens=79"}
    with pytest.raises(UsageError, match="2 replicas x 39 tokens x 1 micro-batch, exp"):
        train(TrainSettings(output_dir=str(folder), **changes), data)
    assert [path.name for path in folder.iterdir()] == ["notes"]


def test_an_update_too_small_for_a_sentence_is_refused_before_data_is_prepared(
    tmp_path,
):
    changes = SETTINGS | {"hparams": f"{HPARAMS},update_tokens=39"}
    settings = TrainSettings(output_dir=str(tmp_path), **changes)
    with pytest.raises(UsageError, match="received update_tokens=39"):
        PreparedTraining.of(settings, catalogue.problem("text_pairs"), None)


@pytest.mark.parametrize(
    ("name", "value"),
    [("save_checkpoints_secs", 600.0), ("early_stopping_patience", 2)],
)
def test_settings_that_workers_could_not_decide_alike_are_refused(name, value):
    settings = TrainSettings(
        output_dir="", hparams_set="transformer_tiny", **{name: value}
    )
    training._check_for_workers(settings, SimpleNamespace(count=1))
    with pytest.raises(UsageError, match=f"received {name}={value} and 2 workers"):
        training._check_for_workers(settings, SimpleNamespace(count=2))
