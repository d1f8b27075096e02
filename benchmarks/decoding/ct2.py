"""Translate ids with CTranslate2 and an export of `t2t export --format ctranslate2`.

Arguments: export folder, weights file (for the ids), threads, batch size in sentences,
compute type.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import ctranslate2
import numpy as np
from worker import batches, serve

EXTRA_LENGTH = 50


def main(
    folder: str, weights: str, threads: str, batch_size: str, compute_type: str
) -> None:
    """Load the model and serve."""
    names = json.loads((Path(folder) / "shared_vocabulary.json").read_text("utf-8"))
    ids_of = {name: number for number, name in enumerate(names)}
    with np.load(weights) as file:
        sources = json.loads(str(file["sources"]))
    # Several threads translate several batches, which is faster than sharing one.
    translator = ctranslate2.Translator(
        folder, compute_type=compute_type, intra_threads=1, inter_threads=int(threads)
    )

    def translate(beam_size: int) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in sources]
        running = []
        for batch in batches(sources, int(batch_size)):
            longest = max(len(ids) for _, ids in batch)
            results = translator.translate_batch(
                [[names[token] for token in ids] for _, ids in batch],
                beam_size=beam_size,
                length_penalty=0.6,
                max_input_length=0,
                max_decoding_length=longest + EXTRA_LENGTH,
                min_decoding_length=0,
                suppress_sequences=[["<pad>"]],
                asynchronous=True,
            )
            running += zip([number for number, _ in batch], results, strict=True)
        for number, result in running:
            best = result.result().hypotheses[0]
            found[number] = [ids_of[token] for token in best]
        return found

    serve(translate)


if __name__ == "__main__":
    main(*sys.argv[1:])
