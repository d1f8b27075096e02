"""Train OpenNMT-tf 2.32's Transformer with its own data pipeline and loop.

Arguments: folder of `data.py`, sizes as JSON, tokens per batch, threads, and "xla" or
"graph". The settings are those of `onmt-main --auto_config` with `batch_type: tokens`,
and of its `--jit_compile` for "xla": buckets of 8 tokens, to whose boundary the batches
are padded, and rows in multiples of 8.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import opennmt
import tensorflow as tf
from opennmt.training import Trainer, TrainingStats
from worker import Counts, serve

SPECIAL_TOKENS = ("<blank>", "<s>", "</s>")
FIRST_ID = 2  # our first id after padding and EOS
# OpenNMT-tf's default, and its value for XLA, which is also the divisor of the rows.
BUCKET_WIDTH, XLA_MULTIPLE = 2, 8


def make_model(sizes: dict[str, float], xla: bool) -> opennmt.models.Transformer:
    """Make a post-norm Transformer with shared embeddings."""
    model = opennmt.models.Transformer(
        num_layers=sizes["layers"],
        num_units=sizes["width"],
        num_heads=sizes["heads"],
        ffn_inner_dim=sizes["filter"],
        dropout=sizes["dropout"],
        attention_dropout=0.0,
        ffn_dropout=0.0,
        mha_bias=False,
        share_embeddings=opennmt.models.EmbeddingsSharingLevel.ALL,
        pre_norm=False,
        output_layer_bias=False,
    )
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = Path(folder) / "vocabulary.txt"
        tokens = (*SPECIAL_TOKENS, *map(str, range(FIRST_ID, sizes["vocab_size"])))
        vocabulary.write_text("\n".join(tokens) + "\n", encoding="utf-8")
        data = {
            "source_vocabulary": str(vocabulary),
            "target_vocabulary": str(vocabulary),
            # Our sources end with EOS, too.
            "source_sequence_controls": {"start": False, "end": True},
        }
        params = model.auto_config()["params"]
        model.initialize(data, params | {"label_smoothing": sizes["smoothing"]})
        model.set_jit_compile(xla)
        model.create_variables()
    return model


def make_dataset(
    model: opennmt.models.Transformer,
    folder: Path,
    batch_tokens: int,
    longest: int,
    xla: bool,
    *,
    single_pass: bool = False,
) -> tf.data.Dataset:
    """Make the batches as OpenNMT-tf's runner does."""
    return model.examples_inputter.make_training_dataset(
        str(folder / "source.txt"),
        str(folder / "target.txt"),
        batch_tokens,
        batch_type="tokens",
        batch_size_multiple=XLA_MULTIPLE if xla else 1,
        shuffle_buffer_size=-1,  # all of the data
        length_bucket_width=XLA_MULTIPLE if xla else BUCKET_WIDTH,
        pad_to_bucket_boundary=xla,
        maximum_features_length=longest,
        maximum_labels_length=longest,
        single_pass=single_pass,
    )


class CountedBatches:
    """Batches for OpenNMT-tf's loop, which remember the last one's counts.

    Args:
        first: Batches that come first.
        others: All other batches.
    """

    def __init__(self, first: list, others: tf.data.Dataset) -> None:
        self.first = first
        self.others = others
        self.element_spec = others.element_spec
        self.counts: Counts | None = None

    def __iter__(self) -> Iterator:
        yield from self.first
        for batch in self.others:
            source, target = batch
            self.counts = (
                *source["ids"].shape,
                target["ids_out"].shape[1],
                int(tf.reduce_sum(source["length"])),
                int(tf.reduce_sum(target["length"])),
            )
            yield batch


def batch_of_every_shape(dataset: tf.data.Dataset) -> list:
    """Return a batch of every shape in a dataset."""
    return list({shape_of(batch): batch for batch in dataset}.values())


def shape_of(batch: tuple[dict, dict]) -> tuple[int, ...]:
    """Return the rows and the lengths of a batch."""
    source, target = batch
    return (*source["ids"].shape, *target["ids_out"].shape)


def make_steps(
    model: opennmt.models.Transformer, batches: CountedBatches
) -> Iterator[float]:
    """Return the generator of OpenNMT-tf's trainer, which yields losses."""
    optimizer = model.get_optimizer()
    trainer = Trainer(model, optimizer)
    trainer._training_stats = TrainingStats(model, optimizer)
    return trainer._steps(batches)


def main(folder: str, sizes: str, batch_tokens: str, threads: str, mode: str) -> None:
    """Make the model and serve."""
    tf.config.threading.set_intra_op_parallelism_threads(int(threads))
    tf.config.threading.set_inter_op_parallelism_threads(int(threads))
    tf.random.set_seed(1)
    given, xla = json.loads(sizes), mode == "xla"
    model = make_model(given, xla)
    arguments = (model, Path(folder), int(batch_tokens), given["longest"], xla)
    once = make_dataset(*arguments, single_pass=True)
    # Without XLA, one graph serves all shapes.
    first = batch_of_every_shape(once if xla else once.take(1))
    batches = CountedBatches(first, make_dataset(*arguments))
    steps = make_steps(model, batches)

    def warm_up() -> int:
        for _ in first:
            next(steps)
        return len(first)

    def updates() -> Iterator[Counts]:
        for _ in steps:
            yield batches.counts

    serve(warm_up, updates())


if __name__ == "__main__":
    main(*sys.argv[1:])
