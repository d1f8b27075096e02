"""Compare a run with `transformers` and PyTorch, in both directions.

`python benchmarks/marian.py RUN --sources test.en --targets test.de`

The run is exported and loaded by the real `MarianMTModel` and `MarianTokenizer`. That
model is then trained further there, saved by `save_pretrained`, and imported here. For
both models, the script counts equal encodings and translations (greedy and beam 4,
without a length penalty), and prints the largest difference of logits.

Needs the extra `huggingface`. If it is installed in another environment, give the
Python of that one as `--torch_python`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from t2t_repro.runs import System

BEAMS = (1, 4)
PAIRS_OF_LOGITS = 100


def probe(task: Path) -> None:
    """Run the real program on the folders that a task names; needs no TensorFlow."""
    import torch
    from transformers import MarianMTModel, MarianTokenizer

    torch.set_num_threads(1)
    todo = json.loads(task.read_text())
    model = MarianMTModel.from_pretrained(todo["exported"])
    tokenizer = MarianTokenizer.from_pretrained(todo["exported"])
    found = {"exported": results(model.eval(), tokenizer, todo)}
    train(model, tokenizer, todo)
    model.save_pretrained(todo["trained"])
    tokenizer.save_pretrained(todo["trained"])
    model = MarianMTModel.from_pretrained(todo["trained"]).eval()
    found["trained"] = results(model, tokenizer, todo)
    task.with_suffix(".found").write_text(json.dumps(found))


def encoded(tokenizer, sources, targets=None):
    """Return a batch of PyTorch."""
    return tokenizer(sources, text_target=targets, return_tensors="pt", padding=True)


def train(model, tokenizer, todo: dict) -> None:
    """Train on the first lines, in batches of 32."""
    import torch

    optimizer = torch.optim.Adam(model.parameters(), 2e-4)
    for step in range(todo["steps"]):
        lines = slice(step % 8 * 32, step % 8 * 32 + 32)
        batch = encoded(tokenizer, todo["sources"][lines], todo["targets"][lines])
        labels = batch["labels"]
        batch["labels"] = labels.masked_fill(labels == tokenizer.pad_token_id, -100)
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()


def results(model, tokenizer, todo: dict) -> dict:
    """Return encodings, logits and translations."""
    import torch

    sources, targets = todo["sources"], todo["targets"]
    found: dict = {
        "inputs": [tokenizer(line)["input_ids"] for line in sources],
        "targets": [tokenizer(text_target=line)["input_ids"] for line in targets],
    }
    with torch.no_grad():
        pairs = zip(sources, targets, strict=True)
        found["logits"] = [
            model(**encoded(tokenizer, [source], [target])).logits[0].tolist()
            for source, target in [*pairs][:PAIRS_OF_LOGITS]
        ]
    for beams in BEAMS:
        found[f"beam {beams}"] = translations(model, tokenizer, sources, beams)
    return found


def translations(model, tokenizer, sources: list[str], beams: int) -> list[str]:
    """Translate, with this package's limit: the tokens of the source and 50."""
    by_length: dict[int, list[int]] = {}
    for number, line in enumerate(sources):
        by_length.setdefault(len(tokenizer(line)["input_ids"]), []).append(number)
    texts = [""] * len(sources)
    for length, numbers in by_length.items():
        ids = model.generate(
            **encoded(tokenizer, [sources[number] for number in numbers]),
            num_beams=beams,
            length_penalty=0.0,
            max_length=None,
            max_new_tokens=length + 50,
            forced_eos_token_id=None,
        )
        found = tokenizer.batch_decode(ids, skip_special_tokens=True)
        for number, text in zip(numbers, found, strict=True):
            texts[number] = text
    return texts


def compare(name: str, system: System, real: dict, todo: dict) -> None:
    """Print what is equal."""
    import numpy as np

    from t2t_repro.constants import EOS_ID
    from t2t_repro.features.huggingface.marian_export import as_marian
    from t2t_repro.settings.decode_hparams import DecodeHParams

    sides = (system.source_tokenizer, system.target_tokenizer)
    orders = [as_marian(tokenizer).vocabulary.order for tokenizer in sides]
    print(f"{name}:")
    lines = (todo["sources"], todo["targets"])
    ids = [
        [[*tokenizer.encode(line), EOS_ID] for line in texts]
        for tokenizer, texts in zip(sides, lines, strict=True)
    ]
    for side, rows, order in zip(("inputs", "targets"), ids, orders, strict=True):
        theirs = [[order[token] for token in row] for row in rows]
        print(f"  {side}: {equal(theirs, real[side])} encodings equal")
    largest = 0.0
    for row, *pair in zip(real["logits"], *ids, strict=False):
        batch = {
            n: np.array([x]) for n, x in zip(("inputs", "targets"), pair, strict=True)
        }
        logits = system.model(batch).numpy()[0]
        largest = max(largest, np.abs(logits - np.array(row)[:, orders[1]]).max())
    print(f"  logits of {len(real['logits'])} pairs: largest difference {largest:.2g}")
    for beams in BEAMS:
        hparams = DecodeHParams(beam_size=beams, alpha=0.0)
        texts = system.translate(todo["sources"], hparams)
        print(f"  beam {beams}: {equal(texts, real[f'beam {beams}'])} texts equal")
        pairs = zip(todo["sources"], texts, real[f"beam {beams}"], strict=True)
        others = [pair for pair in pairs if pair[1] != pair[2]]
        if others:
            sources, ours, theirs = zip(*others, strict=True)
            gains = [
                ours.score - theirs.score
                for ours, theirs in zip(
                    system.score(sources, ours, hparams),
                    system.score(sources, theirs, hparams),
                    strict=True,
                )
            ]
            better = sum(gain > 0 for gain in gains)
            print(f"    of the others, {better} of {len(gains)} more probable here")


def equal(found: list, real: list) -> str:
    """Return how many entries are equal."""
    count = sum(ours == theirs for ours, theirs in zip(found, real, strict=True))
    return f"{count:,} of {len(real):,}"


def main() -> None:
    """Export, run the real program, import, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("output_dir", help="folder of a run")
    parser.add_argument("--sources", required=True, help="source sentences")
    parser.add_argument("--targets", required=True, help="target sentences")
    parser.add_argument("--torch_python", default=sys.executable)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=30, help="updates there")
    args = parser.parse_args()

    from t2t_repro.features.huggingface.marian_export import export_system
    from t2t_repro.features.huggingface.marian_import import read_marian
    from t2t_repro.runs.imported_run import write_run
    from t2t_repro.runs.system import System

    system = System.load(args.output_dir)
    with tempfile.TemporaryDirectory() as folder:
        task = Path(folder) / "task.json"
        todo = {
            "exported": str(export_system(system, Path(folder) / "exported")),
            "trained": str(Path(folder) / "trained"),
            "steps": args.steps,
        }
        for name in ("sources", "targets"):
            text = Path(getattr(args, name)).read_text(encoding="utf-8")
            todo[name] = text.splitlines()[: args.lines]
        task.write_text(json.dumps(todo))
        command = [args.torch_python, "-W", "ignore", __file__, "--probe", str(task)]
        subprocess.run(command, check=True)
        real = json.loads(task.with_suffix(".found").read_text())
        imported = write_run(read_marian(todo["exported"]), Path(folder) / "again")
        trained = write_run(read_marian(todo["trained"]), Path(folder) / "run")
        compare("trained here, run there", system, real["exported"], todo)
        compare("the same, exported and imported", imported, real["exported"], todo)
        compare("trained further there, run here", trained, real["trained"], todo)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--probe"]:
        probe(Path(sys.argv[2]))
    else:
        main()
