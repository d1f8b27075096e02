"""Write `evalb.json`: random pairs of trees, and EVALB's counts for them.

EVALB is the C program of Sekine and Collins, public domain; the wheel of allennlp
2.10.1 holds its source in allennlp/tools/EVALB (gcc compiles it without its
`#include <malloc.h>`).

Usage: python -m tests.golden.make_evalb EVALB COLLINS.prm
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from t2t_repro.features.parsing.trees import Tree
from tests.support.random_trees import altered_tree, random_leaves, random_tree

PAIRS = 120
RESULT = Path(__file__).with_name("evalb.json")
# Columns of EVALB's line on a sentence: matched brackets, true ones, found ones.
MATCHED, TRUE, FOUND = 5, 6, 7


def random_pair(generator: random.Random) -> tuple[Tree, Tree]:
    """Draw a true tree and a found one: equal, similar or unrelated."""
    leaves = random_leaves(generator, most=generator.choice([5, 12, 50]))
    true = random_tree(generator, leaves)
    kind = generator.choice(["same", "altered", "altered", "other"])
    if kind == "other":
        return true, random_tree(generator, leaves)
    return true, altered_tree(generator, true) if kind == "altered" else true


def evalb(pairs: list[tuple[Tree, Tree]], program: str, parameters: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        names = [Path(folder) / name for name in ("true", "found")]
        for path, trees in zip(names, zip(*pairs, strict=True), strict=True):
            path.write_text("".join(f"{tree}\n" for tree in trees))
        command = [program, "-p", parameters, *map(str, names)]
        return subprocess.run(
            command, check=True, capture_output=True, text=True
        ).stdout


def main(program: str, parameters: str) -> None:
    generator = random.Random(1)
    pairs = [random_pair(generator) for _ in range(PAIRS)]
    lines = evalb(pairs, program, parameters).splitlines()
    counts = [line.split() for line in lines[3 : 3 + PAIRS]]
    summary: dict[str, list[float]] = {}
    for line in lines[3 + PAIRS :]:
        name, equals, value = line.partition("=")
        if equals and value.strip().replace(".", "").isdigit():
            summary.setdefault(name.strip(), []).append(float(value))
    result = {
        "pairs": [
            {
                "true": str(true),
                "found": str(found),
                "counts": [int(count[i]) for i in (MATCHED, TRUE, FOUND)],
            }
            for (true, found), count in zip(pairs, counts, strict=True)
        ],
        # Of all sentences, and of those of at most 40 words.
        "summary": summary,
    }
    RESULT.write_text(json.dumps(result, indent=0) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
