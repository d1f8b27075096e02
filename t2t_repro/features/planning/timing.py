"""Time the updates of a planned training run on this machine."""

from __future__ import annotations

import dataclasses
import itertools
import statistics
import time
from collections.abc import Callable, Iterable

import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.constants import EOS_ID, INPUTS, TARGETS
from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.data.pipeline import Batch
from t2t_repro.features.planning.training_plan import TrainingPlan
from t2t_repro.runs.devices import choose_xla_of_new_run, step_options
from t2t_repro.settings.hparams import HParams
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.cluster import make_repeatable, make_strategy
from t2t_repro.training.optimizer import make_optimizer
from t2t_repro.training.step import make_train_step

FIRST_WORD = EOS_ID + 1


@dataclasses.dataclass(frozen=True)
class Timing:
    """Measured time of updates.

    Attributes:
        rows: Sentence pairs of a global batch.
        length: Length of both sides, in tokens.
        steps: Number of timed updates.
        num_replicas: Replicas that shared the batch.
        compilations: Number of first updates: one per batch shape if XLA compiles
            them, otherwise one.
        compile_seconds: Seconds that a first update takes longer than later ones.
        seconds_per_step: Median seconds of an update.
    """

    rows: int
    length: int
    steps: int
    num_replicas: int
    compilations: int
    compile_seconds: float
    seconds_per_step: float

    @property
    def target_tokens_per_second(self) -> float:
        """Target positions per second; the timed batch has no padding."""
        return self.rows * self.length / self.seconds_per_step

    def hours(self, steps: int) -> float:
        """Return the hours of this many updates."""
        return steps * self.seconds_per_step / 3600


def time_training(
    plan: TrainingPlan, settings: TrainSettings, hparams: HParams, steps: int
) -> Timing:
    """Time updates of the planned model on random text of a typical batch's shape.

    Nothing is read or saved, so a real training is slower: it also reads data,
    evaluates and saves checkpoints. Other workers take no part.

    Args:
        plan: The plan. Its batch is scaled if this machine has another number of
            replicas than `plan.update.replicas`.
        settings: Settings of the training run.
        hparams: Its hparams; see `resolved_hparams`.
        steps: Number of updates to time, at least 1.
    """
    # A plan does not know which tokens begin a word; counting them takes little time.
    hparams = hparams.replace(word_positions=False, depth_positions=False)
    hparams = hparams.for_vocabularies(shared=plan.shared_vocabulary)
    strategy = make_strategy(settings.cpu_replicas, cluster=None)
    replicas = strategy.num_replicas_in_sync
    make_repeatable(settings.random_seed, deterministic=settings.deterministic)
    with strategy.scope():
        model = catalogue.model(settings.model).from_hparams(hparams, *plan.vocab_sizes)
        optimizer = make_optimizer(hparams, settings.train_steps)
        optimizer.build(model.trainable_variables)
    # Where R-Drop begins later, its updates, which take longer, are timed.
    hparams = hparams.replace(rdrop_after_steps=0)
    xla = choose_xla_of_new_run(settings, hparams, strategy)
    options = step_options(hparams, plan.update, xla)
    step = make_train_step(model, optimizer, strategy, options)
    shape = plan.typical_batch
    rows = shape.rows // plan.update.replicas
    source_length, _ = BatchPlan.for_training(hparams).packed_lengths
    batch = random_batch(rows, shape.length, plan.vocab_sizes, source_length)
    dataset = tf.data.Dataset.from_tensors(batch).repeat()
    if replicas > 1:
        dataset = strategy.distribute_datasets_from_function(lambda _: dataset)
    seconds = _seconds_of_updates(step, dataset, steps + 1)
    typical = statistics.median(seconds[1:])
    return Timing(
        rows=rows * replicas,
        length=shape.length,
        steps=steps,
        num_replicas=replicas,
        compilations=len(plan.batches) if options.jit_compile else 1,
        compile_seconds=max(seconds[0] - typical, 0.0),
        seconds_per_step=typical,
    )


def _seconds_of_updates(
    step: Callable[[Batch], dict[str, tf.Tensor]], batches: Iterable[Batch], count: int
) -> list[float]:
    """Make updates, and return the time that each takes, in seconds."""
    seconds = []
    for batch in itertools.islice(batches, count):
        start = time.perf_counter()
        step(batch)["loss"].numpy()
        seconds.append(time.perf_counter() - start)
    return seconds


def random_batch(
    rows: int, length: int, vocab_sizes: tuple[int, int], source_length: int = 0
) -> Batch:
    """Draw a batch without padding.

    Args:
        rows: Sentence pairs.
        length: Tokens per side, including EOS.
        vocab_sizes: Sizes of the source and target vocabulary.
        source_length: Tokens of the source, if it has another length; 0 = length.

    Returns:
        {"inputs", "targets"}, int32 `[rows, length]`, the same in every process.
    """

    def side(seed: int, vocab_size: int, length: int) -> tf.Tensor:
        words = tf.random.stateless_uniform(
            (rows, length - 1),
            seed=(seed, 0),
            minval=FIRST_WORD,
            maxval=vocab_size,
            dtype=tf.int32,
        )
        return tf.pad(words, [[0, 0], [0, 1]], constant_values=EOS_ID)

    return {
        INPUTS: side(0, vocab_sizes[0], source_length or length),
        TARGETS: side(1, vocab_sizes[1], length),
    }
