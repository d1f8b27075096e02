"""Translate with this package; the time includes tokenization.

Arguments: output_dir, checkpoint, source file, threads, batch size in tokens.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tensorflow as tf
from worker import serve

from t2t_repro.constants import EOS_ID
from t2t_repro.runs import System
from t2t_repro.settings.decode_hparams import DecodeHParams


def main(
    output_dir: str, checkpoint: str, source: str, threads: str, batch_size: str
) -> None:
    """Load the system and serve."""
    # As the command line does: several threads translate several batches.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(int(threads))
    system = System.load(output_dir, checkpoint)
    lines = Path(source).read_text(encoding="utf-8").splitlines()

    def translate(beam_size: int) -> list[list[int]]:
        hparams = DecodeHParams(beam_size=beam_size, batch_size=int(batch_size))
        found = system.translator(hparams).translate(lines)
        return [
            [token for token in hypotheses[0].ids if token != EOS_ID]
            for hypotheses in found
        ]

    serve(translate)


if __name__ == "__main__":
    main(*sys.argv[1:])
