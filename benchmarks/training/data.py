"""Prepare two files of text for all engines.

Arguments: source file, target file, size of the vocabulary, longest side in tokens,
folder. The folder gets our prepared data, and `source.txt` and `target.txt` with the
ids of the same pairs, without EOS, for the other engines.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from t2t_repro import catalogue
from t2t_repro.data.pipeline import read_examples
from t2t_repro.data.prepare import open_or_prepare
from t2t_repro.data.prepared import PreparedData
from t2t_repro.data.request import PairFiles

SIDES = {"inputs": "source.txt", "targets": "target.txt"}


def write_ids(data: PreparedData, longest: int, folder: Path) -> dict[str, float]:
    """Write the ids of all training pairs that are not too long.

    Args:
        data: Prepared data.
        longest: Tokens of the longest side, including EOS.
        folder: Where to write.

    Returns:
        "vocab_size", "pairs", and "longer_side", the mean length of the longer side.
    """
    pairs = [
        {name: ids.tolist() for name, ids in pair.items()}
        for pair in read_examples(data.shards("train")).as_numpy_iterator()
    ]
    lengths = [max(len(ids) for ids in pair.values()) for pair in pairs]
    kept = [n for n, length in enumerate(lengths) if length <= longest]
    for side, name in SIDES.items():
        lines = (" ".join(map(str, pairs[n][side][:-1])) for n in kept)
        (folder / name).write_text("\n".join(lines) + "\n", encoding="ascii")
    return {
        "vocab_size": data.tokenizers()[1].vocab_size,
        "pairs": len(kept),
        "longer_side": sum(lengths[n] for n in kept) / len(kept),
    }


def main(source: str, target: str, vocab_size: str, longest: str, folder: str) -> None:
    """Prepare the data, and print what the other engines need to know as JSON."""
    catalogue.load()
    files = {"train": PairFiles(Path(source), Path(target))}
    problem = catalogue.problem("text_pairs").with_files(files)
    data = open_or_prepare(problem, folder, {"vocab_size": int(vocab_size)})
    print(json.dumps(write_ids(data, int(longest), Path(folder))))


if __name__ == "__main__":
    main(*sys.argv[1:])
