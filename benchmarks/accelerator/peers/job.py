"""The work that every engine gets: sizes of the model and of a batch.

PyTorch's engines read it, too, so it imports neither Keras nor `t2t_repro`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.training.worker import Counts

UPDATES = 10  # between two waits for the device
FIRST_ID, PAD_ID = 2, 0


@dataclasses.dataclass(frozen=True)
class Job:
    """A model, and a batch without padding.

    Attributes:
        task: "train", or "decode" with beam search.
        layers: Layers of the encoder, and of the decoder.
        width: Width of the model.
        filter: Width inside the feed-forward networks.
        heads: Attention heads.
        vocab_size: Entries of the shared vocabulary.
        dropout: Dropout after every sublayer.
        smoothing: Label smoothing.
        precision: "bfloat16", "tensorfloat32" or "float32".
        rows: Sentence pairs, or sentences to translate.
        length: Tokens per side; while decoding, every output has twice as many.
        beam_size: Size of the beam.
        matmul_size: Rows of the matrices whose product has the rate to compare with.
    """

    task: str
    layers: int
    width: int
    filter: int
    heads: int
    vocab_size: int
    dropout: float
    smoothing: float
    precision: str
    rows: int
    length: int
    beam_size: int
    matmul_size: int

    @classmethod
    def from_json(cls, text: str) -> Job:
        """Read the job that the parent process wrote."""
        return cls(**json.loads(text))

    @property
    def output_length(self) -> int:
        """Number of tokens of every translation."""
        return 2 * self.length


def updates(
    job: Job, update: Callable[[], Any], wait: Callable[[], Any]
) -> Iterator[Counts]:
    """Make `UPDATES` updates whenever it is advanced, and wait for the last.

    Args:
        job: The work.
        update: Starts an update.
        wait: Waits until the device has made all of them.
    """
    rows = UPDATES * job.rows
    while True:
        for _ in range(UPDATES):
            update()
        wait()
        yield (rows, job.length, job.length, rows * job.length, rows * job.length)


def translations(job: Job, translate: Callable[[], Any]) -> Iterator[Counts]:
    """Translate the batch whenever it is advanced; `translate` waits for the device."""
    while True:
        translate()
        source, target = job.rows * job.length, job.rows * job.output_length
        yield (job.rows, job.length, job.output_length, source, target)
