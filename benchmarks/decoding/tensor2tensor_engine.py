"""Translate with tensor2tensor 1.15.7 and its own checkpoint.

Arguments: file with the flags of `t2t-decoder` as JSON, source file, threads, batch
size in sentences. The search runs in a plain session, whose graph is made once for all
lengths. The time includes tokenization. For Python 3.7.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python import autograph
from worker import batches, serve

# Without autograph: its conversion takes minutes, and no result depends on it.
autograph.tf_convert = lambda function, *args, **kwargs: function

from tensor2tensor import models  # noqa: E402, F401
from tensor2tensor.utils import registry, trainer_lib, usr_dir  # noqa: E402

EXTRA_LENGTH = 50
LENGTH_PENALTY = 0.6
EOS_ID = 1


class Search:
    """Search with one beam size, in a separate graph.

    Args:
        flags: Flags of `t2t-decoder`.
        beam_size: Size of the beam.
        threads: Threads of TensorFlow.
    """

    def __init__(self, flags: dict[str, str], beam_size: int, threads: int) -> None:
        config = tf.ConfigProto(
            intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads
        )
        with tf.Graph().as_default():
            hparams = trainer_lib.create_hparams(
                flags["hparams_set"],
                data_dir=flags["data_dir"],
                problem_name=flags["problem"],
            )
            model = registry.model("transformer")(
                hparams, tf.estimator.ModeKeys.PREDICT, hparams.problem_hparams
            )
            self.inputs = tf.placeholder(tf.int32, [None, None])
            features = {
                "inputs": self.inputs[:, :, None, None],
                "target_space_id": tf.constant(0, tf.int32),
            }
            found = model.infer(
                features,
                beam_size=beam_size,
                top_beams=1,
                alpha=LENGTH_PENALTY,
                decode_length=EXTRA_LENGTH,
            )
            self.outputs = found["outputs"]
            self.session = tf.Session(config=config)
            checkpoint = tf.train.latest_checkpoint(flags["output_dir"])
            tf.train.Saver(tf.trainable_variables()).restore(self.session, checkpoint)

    def __call__(self, sources: list[list[int]]) -> list[list[int]]:
        """Return the ids of the best translations of a batch."""
        ids = np.zeros((len(sources), max(map(len, sources))), "int32")
        for row, source in zip(ids, sources):  # noqa: B905
            row[: len(source)] = source
        rows = self.session.run(self.outputs, {self.inputs: ids})
        rows = rows.reshape(len(sources), -1).tolist()
        return [row[: row.index(EOS_ID)] if EOS_ID in row else row for row in rows]


def main(model: str, source: str, threads: str, batch_size: str) -> None:
    """Load the model and serve."""
    with open(model, encoding="utf-8") as file:
        flags = json.load(file)
    usr_dir.import_usr_dir(flags["t2t_usr_dir"])
    encoders = registry.problem(flags["problem"]).feature_encoders(flags["data_dir"])
    with open(source, encoding="utf-8", newline="\n") as file:
        lines = file.read().split("\n")[:-1]
    searches: dict[int, Search] = {}

    def translate(beam_size: int) -> list[list[int]]:
        if beam_size not in searches:
            searches[beam_size] = Search(flags, beam_size, int(threads))
        sources = [[*encoders["inputs"].encode(line), EOS_ID] for line in lines]
        found: list[list[int]] = [[] for _ in sources]
        for batch in batches(sources, int(batch_size)):
            results = searches[beam_size]([ids for _, ids in batch])
            for (number, _), row in zip(batch, results):  # noqa: B905
                found[number] = row
        return found

    serve(translate)


if __name__ == "__main__":
    main(*sys.argv[1:])
