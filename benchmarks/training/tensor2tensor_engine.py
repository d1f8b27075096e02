"""Train tensor2tensor 1.15.7's Transformer with its own batches and optimizer.

Arguments: folder of `data.py`, sizes as JSON, tokens per batch, threads. It reads our
shards, which have its format. The updates run in a plain session, without the hooks,
summaries and checkpoints of its trainer. For Python 3.7.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python import autograph
from worker import serve

# Without autograph: its conversion takes minutes, and no result depends on it.
autograph.tf_convert = lambda function, *args, **kwargs: function

from tensor2tensor.data_generators import text_encoder, text_problems  # noqa: E402
from tensor2tensor.models import transformer  # noqa: E402
from tensor2tensor.utils import registry  # noqa: E402


class Ids(text_encoder.TextEncoder):
    """A vocabulary of which only the size matters."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self._vocab_size = vocab_size

    @property
    def vocab_size(self) -> int:
        return self._vocab_size


class Pairs(text_problems.Text2TextProblem):
    """The shards of `text_pairs`."""

    ids: Ids

    def feature_encoders(self, data_dir: str) -> dict[str, Ids]:
        return {"inputs": self.ids, "targets": self.ids}

    def dataset_filename(self) -> str:
        return "text_pairs"

    def max_length(self, model_hparams: object) -> int:
        return model_hparams.max_length


def hparams_of(sizes: dict, batch_tokens: int, folder: str, pairs: Pairs) -> object:
    """Return the hparams of a post-norm Transformer."""
    hparams = transformer.transformer_base()
    hparams.num_hidden_layers = sizes["layers"]
    hparams.hidden_size = sizes["width"]
    hparams.filter_size = sizes["filter"]
    hparams.num_heads = sizes["heads"]
    hparams.layer_preprocess_sequence = "none"
    hparams.layer_postprocess_sequence = "dan"
    hparams.layer_prepostprocess_dropout = sizes["dropout"]
    hparams.attention_dropout = hparams.relu_dropout = 0.0
    hparams.label_smoothing = sizes["smoothing"]
    hparams.batch_size, hparams.max_length = batch_tokens, sizes["longest"]
    hparams.add_hparam("data_dir", folder)
    hparams.problem = pairs
    hparams.problem_hparams = pairs.get_hparams(hparams)
    return hparams


def main(folder: str, sizes: str, batch_tokens: str, threads: str) -> None:
    """Make the model and serve."""
    given = json.loads(sizes)
    Pairs.ids = Ids(given["vocab_size"])
    pairs, train = Pairs(), tf.estimator.ModeKeys.TRAIN
    hparams = hparams_of(given, int(batch_tokens), folder, pairs)
    params = {"batch_size": hparams.batch_size}
    data = pairs.input_fn(train, hparams, data_dir=folder, params=params)
    features, _ = tf.data.make_one_shot_iterator(data).get_next()
    tf.train.create_global_step()
    model = registry.model("transformer")(hparams, train, hparams.problem_hparams)
    _, losses = model(features)
    update = model.optimize(losses["training"], num_async_replicas=1)
    config = tf.ConfigProto(
        intra_op_parallelism_threads=int(threads),
        inter_op_parallelism_threads=int(threads),
    )
    session = tf.Session(config=config)
    session.run(tf.global_variables_initializer())
    sides = [features["inputs"], features["targets"]]

    def updates() -> Iterator[tuple]:
        while True:
            _, *ids = session.run([update, *sides])
            source, target = (side[:, :, 0, 0] for side in ids)
            tokens = [int(np.count_nonzero(side)) for side in (source, target)]
            yield (len(target), source.shape[1], target.shape[1], *tokens)

    steps = updates()

    def warm_up() -> int:
        for _ in range(3):
            next(steps)
        return 1  # one graph for all shapes

    serve(warm_up, steps)


if __name__ == "__main__":
    main(*sys.argv[1:])
