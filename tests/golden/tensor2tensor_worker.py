"""What the real tensor2tensor computes with the golden models; for Python 3.7.

`make_tensor2tensor.py` runs it, as `tensor2tensor_worker.py FOLDER MODEL...`.
The folder of each model gets `expected.npz` and `expected.json`; FOLDER has a
description of the models, `models.json`.
"""

import json
import os
import sys

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python import autograph

# The conversion of tensor2tensor's code takes minutes and changes nothing here.
autograph.tf_convert = lambda function, *args, **kwargs: function

from tensor2tensor.data_generators import translate_ende  # noqa: E402, F401
from tensor2tensor.utils import (  # noqa: E402
    registry,
    trainer_lib,
    usr_dir,
)

PAIRS, SOURCES, UPDATES, EXTRA_LENGTH = 4, 24, 3, 50


class Golden:
    """A trained model, with the text of its problem."""

    def __init__(self, folder, name):
        with open(os.path.join(folder, "models.json")) as file:
            described = json.load(file)[name]
        self.folder = os.path.join(folder, name)
        self.data_dir = described.get("data_dir", os.path.join(folder, "data"))
        checkpoint = described.get("checkpoint", self.folder)
        self.checkpoint = tf.train.latest_checkpoint(checkpoint)
        self.settings = os.path.join(checkpoint, "hparams.json")
        self.target_space_id = described.get("target_space_id", 0)
        # Only every so-many-th logit of a large vocabulary is kept, and nothing else.
        self.every = described.get("every")
        self.hparams_set, self.problem = described["set"], described["problem"]
        self.encoders = registry.problem(self.problem).feature_encoders(self.data_dir)
        texts = []
        for side in ("en", "de"):
            with open(os.path.join(folder, "tmp", f"dev.{side}")) as file:
                texts.append(file.read().split("\n")[:-1])
        self.sources, self.targets = texts

    def hparams(self, **changes):
        hparams = trainer_lib.create_hparams(
            self.hparams_set,
            data_dir=self.data_dir,
            problem_name=self.problem,
            hparams_path=self.settings if self.every else None,
        )
        hparams.problem_hparams.target_space_id = self.target_space_id
        for name, value in changes.items():
            setattr(hparams, name, value)
        return hparams

    def model(self, mode, **changes):
        hparams = self.hparams(**changes)
        make = registry.model("transformer")
        return make(hparams, mode, hparams.problem_hparams)

    def rows(self, side, texts):
        ids = [[*self.encoders[side].encode(text), 1] for text in texts]
        length = max(map(len, ids))
        return np.array([row + [0] * (length - len(row)) for row in ids], "int32")

    def batch(self, first, count):
        rows = slice(first, first + count)
        return (
            self.rows("inputs", self.sources[rows]),
            self.rows("targets", self.targets[rows]),
        )


def features_of(model, inputs, targets):
    space = model.problem_hparams.target_space_id
    return {
        "inputs": inputs[:, :, None, None],
        "targets": targets[:, :, None, None],
        "target_space_id": tf.constant(space, tf.int32),
    }


def placeholders():
    return [tf.placeholder(tf.int32, [None, None]) for _ in range(2)]


def logits_of(golden):
    """Return ids, logits and the loss of some pairs, as an evaluation computes them."""
    tf.reset_default_graph()
    model = golden.model(tf.estimator.ModeKeys.EVAL)
    inputs, targets = placeholders()
    logits, losses = model(features_of(model, inputs, targets))
    ids = golden.batch(0, PAIRS)
    with tf.Session() as session:
        tf.train.Saver(tf.trainable_variables()).restore(session, golden.checkpoint)
        values, loss = session.run(
            [logits, losses["training"]], {inputs: ids[0], targets: ids[1]}
        )
    return ids, values[:, :, 0, 0, :], float(loss)


def translations_of(golden, beam_size):
    """Return the translation of each source, one search per source."""
    tf.reset_default_graph()
    model = golden.model(tf.estimator.ModeKeys.PREDICT)
    inputs, _ = placeholders()
    features = {
        "inputs": inputs[:, :, None, None],
        "target_space_id": tf.constant(0, tf.int32),
    }
    found = model.infer(
        features,
        beam_size=beam_size,
        top_beams=1,
        alpha=0.6,
        decode_length=EXTRA_LENGTH,
    )
    with tf.Session() as session:
        tf.train.Saver(tf.trainable_variables()).restore(session, golden.checkpoint)
        lines = []
        for text in golden.sources[:SOURCES]:
            ids = session.run(found["outputs"], {inputs: golden.rows("inputs", [text])})
            row = [int(token) for token in np.ravel(ids)]
            row = row[: row.index(1)] if 1 in row else row
            lines.append(golden.encoders["targets"].decode(row))
    return lines


def updates_of(golden):
    """Return losses and weights of some updates without dropout."""
    tf.reset_default_graph()
    tf.train.create_global_step()
    model = golden.model(
        tf.estimator.ModeKeys.TRAIN,
        layer_prepostprocess_dropout=0.0,
        attention_dropout=0.0,
        relu_dropout=0.0,
    )
    inputs, targets = placeholders()
    _, losses = model(features_of(model, inputs, targets))
    loss = losses["training"]
    update = model.optimize(loss)
    weights = {variable.op.name: variable for variable in tf.trainable_variables()}
    seen, batches = [], []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        saved = [name for name, _ in tf.train.list_variables(golden.checkpoint)]
        known = [v for v in tf.global_variables() if v.op.name in saved]
        missing = [v for v in tf.global_variables() if v.op.name not in saved]
        assert not [v for v in missing if v.op.name.startswith("training/")], missing
        tf.train.Saver(known).restore(session, golden.checkpoint)
        for number in range(UPDATES):
            ids = golden.batch(PAIRS + 8 * number, 8)
            value, _ = session.run([loss, update], {inputs: ids[0], targets: ids[1]})
            seen.append(float(value))
            batches.append(ids)
        return batches, seen, session.run(weights)


def main(folder, names):
    usr_dir.import_usr_dir(os.path.join(folder, "golden"))
    for name in names:
        golden = Golden(folder, name)
        (inputs, targets), logits, loss = logits_of(golden)
        os.makedirs(golden.folder, exist_ok=True)
        arrays = {"inputs": inputs, "targets": targets, "logits": logits}
        path = os.path.join(golden.folder, "expected.npz")
        if golden.every:
            arrays["logits"] = logits[..., :: golden.every]
            np.savez_compressed(path, **arrays)
            continue
        expected = {
            "loss": loss,
            "sources": golden.sources[:SOURCES],
            "greedy": translations_of(golden, 1),
            "beam": translations_of(golden, 4),
        }
        variables = [n for n, _ in tf.train.list_variables(golden.checkpoint)]
        if any(variable.startswith("training/") for variable in variables):
            batches, losses, weights = updates_of(golden)
            expected["update_losses"] = losses
            for number, ids in enumerate(batches):
                arrays[f"batch_{number}/inputs"] = ids[0]
                arrays[f"batch_{number}/targets"] = ids[1]
            for variable, value in weights.items():
                arrays["updated/" + variable] = value
        np.savez_compressed(path, **arrays)
        with open(os.path.join(golden.folder, "expected.json"), "w") as file:
            json.dump(expected, file, indent=1, ensure_ascii=False, sort_keys=True)
            file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
