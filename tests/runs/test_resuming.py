"""Runs begin, are resumed and averaged; nothing is trained, and all values differ."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from types import SimpleNamespace

import pytest

from t2t_repro import catalogue
from t2t_repro.errors import UsageError, UserError
from t2t_repro.files import folder_lock
from t2t_repro.runs import TrainSettings, run_training, training_config
from t2t_repro.runs.resuming import resumed_settings
from t2t_repro.runs.run import Run
from t2t_repro.runs.training_config import TrainingConfig
from t2t_repro.text import SymbolTokenizer
from t2t_repro.user_packages import remember
from tests.runs.test_run import SETTINGS
from tests.support.recorder import record

SOURCE, TARGET = SymbolTokenizer(list("0123")), SymbolTokenizer(list("abcdef"))
PROBLEM = catalogue.problem("algorithmic_identity")
OTHER = catalogue.problem("algorithmic_reverse")
VALUES = SETTINGS.values() | {
    "hparams_set": "transformer_tiny",
    "hparams": "filter_size=48,batch_size=520,max_length=40",
    "model": "transformer",
    "average_last": 2,
    "decode_hparams": "",
    "warm_start_from": None,
    "xla": "on",
}
STRATEGY = SimpleNamespace(num_replicas_in_sync=3)


def configured(settings, problem=PROBLEM):
    """Return a training as a command checks it before its data is prepared."""
    return TrainingConfig.from_settings(settings, problem)


class Training:
    """A folder in which `train` runs with stand-ins, and their calls."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        self.data = SimpleNamespace(
            problem=PROBLEM,
            folder=folder / "data",
            digest="the digest",
            splits=("train", "dev"),
            tokenizers=lambda: (SOURCE, TARGET),
        )
        self.package = folder / "package_of_a_user"
        load = catalogue.load
        self.loaded = record(monkeypatch, catalogue, "load", lambda _=None: load())
        self.steps, self.stop_signal, self.stopped_early = 170, None, False
        self.strategy = record(monkeypatch, run_training, "make_strategy", STRATEGY)
        self.made = record(monkeypatch, run_training, "make_trainer", self._trainer)
        self.averaged = record(monkeypatch, run_training, "average_paths", "averaged")
        # TensorBoard is written only if the trainer has a log.
        monkeypatch.setattr(run_training, "write_beginning", print, raising=False)

    @property
    def output_dir(self):
        return self.folder / "run"

    def _trainer(self, *_, **__):
        return SimpleNamespace(
            train=self._train,
            stop_signal=self.stop_signal,
            stopped_early=self.stopped_early,
            log=None,
            model=None,
            optimizer=None,
            step=self.steps,
        )

    def _train(self):
        # Nobody else can train here now.
        lock = folder_lock(self.output_dir, run_training.TRAINING_LOCK, "training")
        with pytest.raises(UserError, match="training"), lock:
            pass
        self.write_checkpoints(self.steps)
        return self.steps

    def write_checkpoints(self, *steps, folder="."):
        (self.output_dir / folder).mkdir(exist_ok=True, parents=True)
        for step in steps:
            (self.output_dir / folder / f"model.ckpt-{step}.index").touch()

    def settings(self, **changes):
        places = {"output_dir": self.output_dir, "t2t_usr_dir": self.package}
        return TrainSettings(**(VALUES | places | changes))

    def train(self, **changes):
        return run_training.train(self.settings(**changes), self.data)

    def path(self, step, folder="."):
        return str(self.output_dir / folder / f"model.ckpt-{step}")


@pytest.fixture
def trained(tmp_path, monkeypatch):
    return Training(tmp_path, monkeypatch)


def test_a_complete_training_is_averaged_and_its_trainer_has_every_part(trained):
    result = trained.train()
    assert (result.output_dir, result.steps) == (trained.output_dir, 170)
    assert (result.complete, result.averaged) == (True, "averaged")
    call = trained.made.call
    assert call["run"] == Run.load_existing(trained.output_dir)
    assert call["config"].settings == trained.settings()
    assert (call["data"], call["strategy"]) == (trained.data, STRATEGY)
    assert trained.strategy.call == {"cpu_replicas": 4, "cluster": "slurm"}
    for last in (0, 1):  # one checkpoint has no average
        assert trained.train(average_last=last).averaged is None


def test_settings_that_need_scores_need_a_dev_split(trained):
    trained.data.splits = ("train",)
    with pytest.raises(UsageError, match="early_stopping_patience=14 and data without"):
        trained.train()
    with pytest.raises(UsageError, match="keep_best=8 and data without a dev split"):
        trained.train(early_stopping_patience=0)
    trained.train(early_stopping_patience=0, keep_best=1)


def test_the_description_of_a_new_run_has_every_value(trained):
    trained.train()
    run = Run.load_existing(trained.output_dir)
    hparams = catalogue.hparams("transformer_tiny").parse(VALUES["hparams"]).resolved()
    assert dataclasses.asdict(run) == dataclasses.asdict(
        Run(
            problem="algorithmic_identity",
            model="transformer",
            hparams_set="transformer_tiny",
            hparams=hparams,
            random_seed=11,
            num_replicas=3,
            data_dir=str((trained.folder / "data").resolve()),
            data_digest="the digest",
            usr_dir=str(trained.package.resolve()),
            tokenizers={"inputs": "inputs.symbols", "targets": "targets.symbols"},
            training=run.training,
        )
    )
    elsewhere = {"hparams_set", "hparams", "model", "random_seed"}
    elsewhere |= {"output_dir", "t2t_usr_dir"}
    assert run.training == {n: v for n, v in VALUES.items() if n not in elsewhere}
    found = run.load_tokenizers(trained.output_dir)
    assert [each.to_bytes() for each in found] == [SOURCE.to_bytes(), TARGET.to_bytes()]


@pytest.mark.parametrize(("steps", "stop_signal"), [(169, None), (170, 15), (8, 15)])
def test_a_stopped_training_is_incomplete_and_not_averaged(trained, steps, stop_signal):
    trained.steps, trained.stop_signal = steps, stop_signal
    result = trained.train()
    assert (result.steps, result.complete, result.averaged) == (steps, False, None)
    assert result.stop_signal == stop_signal
    assert trained.averaged.calls == []


def end_early(trained, *, age):
    """Let the average end before the last checkpoint, `age` seconds older than it."""
    index = trained.output_dir / "averaged" / "model.ckpt-160.index"
    index.with_name("model.ckpt-170.index").rename(index)
    written = (trained.output_dir / "model.ckpt-170.index").stat().st_mtime
    os.utime(index, (written - age, written - age))


def lose_average(trained):
    (trained.output_dir / "averaged" / "model.ckpt-170.index").unlink()


def lose_last(trained):
    last = trained.output_dir / "model.ckpt-170.index"
    last.rename(last.with_name("model.ckpt-160.index"))


@pytest.mark.parametrize(
    ("happens", "changes", "kept"),
    [
        (lambda _: None, {}, 170),
        # That of the best checkpoints may end earlier.
        (lambda trained: end_early(trained, age=-1), {}, 160),
        (lambda trained: end_early(trained, age=1), {}, None),
        (lambda _: None, {"average_last": 3}, None),
        (lambda trained: setattr(trained, "steps", 190), {"train_steps": 190}, None),
        (lose_average, {}, None),
        (lose_last, {}, None),
    ],
    ids=["same", "best", "older", "settings", "further", "none", "lost"],
)
def test_a_finished_run_keeps_an_average_that_is_right(trained, happens, changes, kept):
    trained.train()
    trained.write_checkpoints(170, folder="averaged")
    trained.averaged.calls.clear()
    happens(trained)
    expected = "averaged" if kept is None else trained.path(kept, "averaged")
    assert trained.train(**changes).averaged == expected
    assert len(trained.averaged.calls) == (kept is None)


def test_a_moving_average_does_not_replace_a_later_average(trained, monkeypatch):
    monkeypatch.setattr(
        run_training, "averaged_weights", lambda *_: contextlib.nullcontext()
    )
    written = record(monkeypatch, run_training, "write_averaged", "moving")
    hparams = f"{VALUES['hparams']},ema_decay=0.999"
    assert trained.train(hparams=hparams).averaged == "moving"
    trained.write_checkpoints(170, folder="averaged")
    kept = trained.path(170, "averaged")
    assert trained.train(hparams=hparams).averaged == kept
    assert written.call["step"] == 170


def test_checkpoints_without_the_description_of_their_run_are_refused(trained):
    trained.write_checkpoints(170)
    before = sorted(trained.output_dir.rglob("*"))
    with pytest.raises(UserError, match=r"without the hparams\.json of their run"):
        trained.train()
    assert sorted(trained.output_dir.rglob("*")) == before


@pytest.mark.parametrize(
    "name",
    [
        "metrics.jsonl",
        "best/thesis.txt",
        "best_models/scores.json",
        "averaged/notes.txt",
        "train/events.out.tfevents.1",
        "eval/events.out.tfevents.1",
    ],
)
def test_files_that_a_new_run_would_replace_are_kept_and_named(trained, name):
    path = trained.output_dir / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("of another program")
    first = name.partition("/")[0]
    with pytest.raises(UserError, match=rf"holds .*{first} without the hparams"):
        trained.train()
    assert path.read_text() == "of another program"


def test_a_folder_with_other_files_takes_a_new_run(trained):
    for name in ("notes.txt", "other/events.out.tfevents.1"):
        (trained.output_dir / name).parent.mkdir(parents=True, exist_ok=True)
        (trained.output_dir / name).write_text("of another program")
    trained.train()
    assert (trained.output_dir / "notes.txt").exists()


def lose_checkpoints(trained):
    """Make a run a dead one, which has no checkpoint to resume from."""
    for path in trained.output_dir.glob("model.ckpt-*.index"):
        path.unlink()


def test_a_new_run_takes_the_place_of_a_dead_one(trained):
    trained.train()
    lose_checkpoints(trained)
    trained.write_checkpoints(170, folder="best")
    events = trained.output_dir / "train" / "events.out.tfevents.1.host"
    events.parent.mkdir()
    events.touch()
    other = {"random_seed": 12, "train_steps": 100}
    configured(trained.settings(**other), OTHER)
    trained.train(**other)
    assert Run.load_existing(trained.output_dir).random_seed == 12
    assert not (trained.output_dir / "best").exists()
    assert not events.exists()


def test_resuming_keeps_best_average_and_events(trained):
    trained.train()
    trained.write_checkpoints(170, folder="averaged")
    trained.write_checkpoints(120, folder="best")
    events = trained.output_dir / "train" / "events.out.tfevents.1.host"
    events.parent.mkdir()
    events.touch()
    before = set(trained.output_dir.rglob("*"))
    trained.train(average_last=3)
    assert before <= set(trained.output_dir.rglob("*"))


def test_the_average_of_a_run_that_lost_its_checkpoints_is_not_removed(trained):
    trained.train()
    trained.write_checkpoints(170, folder="averaged")
    lose_checkpoints(trained)
    with pytest.raises(UserError, match="a new run would replace the average"):
        trained.train()
    assert list((trained.output_dir / "averaged").iterdir())


def test_a_resumed_run_keeps_its_past_and_takes_what_may_change(trained):
    trained.train()
    before = Run.load_existing(trained.output_dir)
    dataclasses.replace(before, versions={"keras": "1.0"}).save(trained.output_dir)
    trained.data.folder = trained.folder / "moved"
    other = trained.folder / "another_package"
    trained.train(
        t2t_usr_dir=str(other), log_step_count_steps=8, hparams=VALUES["hparams"]
    )
    run = Run.load_existing(trained.output_dir)
    assert run.data_dir == str((trained.folder / "moved").resolve())
    assert run.usr_dir == str(other.resolve())
    assert run.training == before.training | {"log_step_count_steps": 8}
    assert run.versions == {"keras": "1.0"}
    assert run.tokenizers == before.tokenizers
    assert trained.made.calls[-1]["run"] == run


@pytest.mark.parametrize(
    ("steps", "warned"), [(170, False), (180, True), (230, True)], ids=str
)
def test_training_further_after_the_decay_is_warned_of(trained, caplog, steps, warned):
    schedule = catalogue.hparams("transformer_tiny").learning_rate_schedule
    hparams = VALUES["hparams"] + (
        f",learning_rate_schedule={schedule}*linear_decay,learning_rate_decay_steps=50"
    )
    trained.train(hparams=hparams)
    trained.train(hparams=hparams, train_steps=steps)
    assert ("the learning rate rises again" in caplog.text) == warned
    if steps == 230:
        assert "linear_decay was at 0.02 of the rate at step 170" in caplog.text
        assert "with train_steps=230 it is at 1" in caplog.text


MECAB = "sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab"
NO_NEED = {"early_stopping_patience": 0, "keep_best": 1, "eval_sentences": 0}


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({"spike_factor": 0.5}, "received spike_factor=0.5, expected 0 or more than 1"),
        ({"spike_factor": 1.0}, "received spike_factor=1.0, expected 0 or more than 1"),
        (
            {"max_skipped_updates": 0},
            "spike_factor=6.5, which has no effect with max_skipped_updates=0",
        ),
        (
            NO_NEED | {"early_stopping_patience": 3},
            "early_stopping_patience=3, which has no effect with eval_sentences=0",
        ),
        (
            NO_NEED | {"keep_best": 3},
            "keep_best=3, which has no effect with eval_sentences=0",
        ),
        ({"bleu_tokenizer": "ja-mecab"}, r"ja-mecab.*sacrebleu\[ja\]"),
        ({"decode_hparams": "beam=3"}, "Did you mean beam_size"),
        ({"decode_hparams": "constrain=tree"}, "algorithmic_identity has no grammar"),
        ({"decode_hparams": "batch_size=39"}, "=39, expected at least 40 tokens"),
        ({"hparams_set": "transformer_tini"}, "Did you mean transformer_tiny"),
    ],
)
def test_wrong_settings_are_refused_early(trained, monkeypatch, changes, answer):
    monkeypatch.setattr(MECAB, None)
    with pytest.raises(UserError, match=answer):
        configured(trained.settings(**changes))
    assert not trained.output_dir.exists()


def test_a_problem_that_is_not_registered_is_not_trained_on(trained):
    unknown = type("Unknown", (type(PROBLEM),), {})()
    with pytest.raises(UsageError, match="unknown problem 'unknown'"):
        configured(trained.settings(), unknown)
    assert not trained.output_dir.exists()


def test_problems_without_bleu_have_no_tokenizer(trained):
    parsing = catalogue.problem("parsing_synthetic")
    with pytest.raises(UsageError, match="not scored by BLEU"):
        configured(trained.settings(), parsing)
    configured(trained.settings(bleu_tokenizer="auto"), parsing)


CHINESE = ["狗猫看见一棵大树。", "猫看见狗。"]


@pytest.fixture
def chinese(trained, monkeypatch):
    """Return a training with Chinese dev targets and no given tokenizer."""
    monkeypatch.setitem(VALUES, "bleu_tokenizer", "auto")
    trained.data.raw_text = lambda split: (["a dog"] * 2, CHINESE)
    return trained


def test_the_tokenizer_of_bleu_is_chosen_by_the_dev_targets_and_recorded(chinese):
    chinese.train()
    assert chinese.made.call["config"].settings.bleu_tokenizer == "zh"
    assert Run.load_existing(chinese.output_dir).bleu_tokenizer == "zh"
    chinese.data.raw_text = lambda split: (["a dog"], ["ein Hund"])
    chinese.train()
    assert chinese.made.calls[-1]["config"].settings.bleu_tokenizer == "zh"


def test_a_run_resumes_only_with_the_tokenizer_of_its_scores(chinese):
    chinese.train()
    with pytest.raises(UsageError, match=r"bleu_tokenizer=char.*scores with zh"):
        chinese.train(bleu_tokenizer="char")
    chinese.train(bleu_tokenizer="zh")


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        ({"digest": "another"}, "data_digest is 'the digest' there, 'another' now"),
        ({"tokenizers": lambda: (TARGET, SOURCE)}, "another vocabulary"),
        ({"tokenizers": lambda: (SOURCE, SOURCE)}, "another vocabulary"),
        ({"tokenizers": lambda: (TARGET, TARGET)}, "another vocabulary"),
    ],
)
def test_other_data_is_refused(trained, change, answer):
    trained.train()
    for name, value in change.items():
        setattr(trained.data, name, value)
    with pytest.raises(UserError, match=answer) as caught:
        trained.train()
    assert str(caught.value).startswith(f"{trained.output_dir} holds a run")


def test_what_is_decided_about_xla_is_recorded(trained, monkeypatch):
    record(monkeypatch, run_training, "choose_xla", "fusible")
    trained.train(xla="auto")
    assert Run.load_existing(trained.output_dir).training["xla"] == "fusible"


def test_a_new_run_needs_a_batch_for_one_long_sentence(trained):
    configured(trained.settings(hparams="batch_size=40,max_length=40"))
    with pytest.raises(UsageError, match=r"batch_size=39, .* at least max_length=40"):
        configured(trained.settings(hparams="batch_size=39,max_length=40"))


SHARED = "shared_embedding_and_softmax_weights"


def test_sharing_two_vocabularies_on_request_is_refused(trained):
    with pytest.raises(UsageError, match=f"received {SHARED}=true, and data with one"):
        trained.train(hparams=f"{SHARED}=true")


def test_a_run_that_another_process_trained_meanwhile_is_resumed(trained):
    waiting = configured(trained.settings())
    assert waiting.resumed_run is None
    trained.train()
    run = Run.load_existing(trained.output_dir)
    run_training.run_training(waiting, trained.data)
    assert trained.made.calls[-1]["config"].resumed_run == run
    assert trained.made.calls[-1]["run"].versions == run.versions


def test_a_resumed_training_has_the_runs_settings_and_the_given_ones(trained):
    trained.package.mkdir()
    remember(trained.package)
    trained.train()
    run = Run.load_existing(trained.output_dir)
    given = {"train_steps": 999, "hparams": "max_length=41,num_heads=2"}
    found = resumed_settings(run, trained.output_dir, given)
    same = trained.settings().replace(hparams="")
    assert found.replace(hparams="", train_steps=170) == same
    assert found.train_steps == 999
    # The given overrides come last, in place of the recorded ones.
    assert found.hparams.split(",")[-2:] == ["max_length=41", "num_heads=2"]
    recorded = {"filter_size=48", "batch_size=520"}
    assert set(found.hparams.split(",")[:-2]) == recorded
    unchanged = resumed_settings(run, trained.output_dir, {})
    assert unchanged.replace(hparams="") == same
    assert set(unchanged.hparams.split(",")) == {*VALUES["hparams"].split(",")}


def test_another_set_is_refused_before_the_runs_overrides_are_added_to_it(trained):
    """With its own `max_length`, the set might not allow the run's `packed_length`."""
    trained.train(t2t_usr_dir=None)
    run = Run.load_existing(trained.output_dir)
    assert run.usr_dir is None
    other = {"hparams_set": "transformer_big"}
    with pytest.raises(UserError, match=r"hparams_set is .* there, 'transformer_big'"):
        resumed_settings(run, trained.output_dir, other)
    same = resumed_settings(run, trained.output_dir, {"hparams_set": run.hparams_set})
    assert same == resumed_settings(run, trained.output_dir, {})


@pytest.fixture
def second(trained, monkeypatch):
    """Return a training run as worker 1 of 2, which is not the chief."""
    trained.waits = []
    workers = SimpleNamespace(
        count=2, number=1, is_chief=False, wait_for_all=lambda: trained.waits.append(1)
    )
    monkeypatch.setattr(run_training, "Workers", lambda strategy: workers)
    monkeypatch.setattr(trained, "_train", lambda: trained.steps)
    record(monkeypatch, training_config, "check_warm_start")
    trained.begun = record(monkeypatch, run_training, "begin_with")
    trained.tried = record(monkeypatch, run_training, "check_memory")
    return trained


FOR_WORKERS = {"save_checkpoints_secs": 0.0, "early_stopping_patience": 0}


def test_a_worker_trains_like_the_chief_and_writes_nothing(second):
    result = second.train(**FOR_WORKERS)
    call = second.made.call
    assert call["config"].settings == second.settings(**FOR_WORKERS)
    assert (call["data"], call["strategy"]) == (second.data, STRATEGY)
    assert call["run"].num_replicas == 3
    log = call["log"].output_dir
    assert second.output_dir not in (log, *log.parents)
    assert not log.exists()
    assert list(second.output_dir.iterdir()) == []
    assert (result.steps, result.complete, result.is_chief) == (170, True, False)
    assert (result.averaged, second.averaged.calls) == (None, [])
    assert second.waits == [1]


def test_all_workers_start_warm_and_try_the_largest_batch_once(second, monkeypatch):
    source = str(second.folder / "other")
    options = FOR_WORKERS | {"warm_start_from": source, "try_largest_batch": "on"}
    second.train(**options)
    assert second.begun.call["warm_start_from"] == source
    assert second.tried.call["data"] is second.data
    names = dict.fromkeys(("inputs", "targets"), "any.symbols")
    run = dataclasses.replace(second.made.call["run"], tokenizers=names)
    run.save(second.output_dir)
    second.write_checkpoints(170)
    second.train(**options)
    assert (len(second.begun.calls), len(second.tried.calls)) == (1, 1)
