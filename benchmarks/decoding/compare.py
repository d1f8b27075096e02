"""Compare the speed of decoding engines, with the same trained weights in all.

Each engine runs in its own process and interpreter. The engines take turns, so that a
busy machine slows all of them; the table shows medians and ratios. The outputs are
compared line by line with ours.

    python benchmarks/decoding/weights.py OUTPUT_DIR CHECKPOINT SOURCE weights.npz
    python -m benchmarks.decoding.compare --output_dir OUTPUT_DIR \
        --checkpoint CHECKPOINT --source SOURCE --weights weights.npz \
        --marian_python MARIAN/bin/python --onmt_python ONMT/bin/python \
        --ctranslate2 EXPORT_DIR --t2t_python T2T/bin/python --t2t_model MODEL.json

MARIAN needs torch and transformers. ONMT needs Python 3.10 at most, and
"OpenNMT-tf[tensorflow]==2.32.0". EXPORT_DIR is a folder of `t2t export --format
ctranslate2`. T2T needs Python 3.7, tensor2tensor 1.15.7 and tensorflow 1.15.5.
MODEL.json has the flags of `t2t-decoder` for the model that OUTPUT_DIR was imported
from: "t2t_usr_dir", "problem", "data_dir", "hparams_set", "output_dir".

The length penalty is ((5 + n) / 6)^alpha in ours and OpenNMT-tf, and n^alpha in the
others. OpenNMT-tf counts one token too many in hypotheses that are complete, so that
its beam search, too, differs from ours on some lines.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

from benchmarks.child import children

HERE = Path(__file__).resolve().parent
OURS = "t2t_repro"


def commands_of(args: argparse.Namespace) -> dict[str, list[str]]:
    """Return the commands of the engines that the flags name, ours first."""
    threads = str(args.threads)
    ours = [args.output_dir, args.checkpoint, args.source, threads, args.batch_tokens]
    commands = {OURS: [sys.executable, HERE / "ours.py", *ours]}
    if args.marian_python:
        marian = [args.weights, threads, args.batch_sentences]
        commands["Hugging Face"] = [args.marian_python, HERE / "marian.py", *marian]
    if args.onmt_python:
        onmt = [args.weights, threads, args.batch_sentences]
        commands["OpenNMT-tf"] = [args.onmt_python, HERE / "onmt.py", *onmt]
    for folder in args.ctranslate2:
        for compute_type in args.compute_types:
            given = [folder, args.weights, threads, args.batch_sentences, compute_type]
            name = f"CTranslate2 {compute_type}"
            commands[name] = [sys.executable, HERE / "ct2.py", *given]
    if args.t2t_python:
        t2t = [args.t2t_model, args.source, threads, args.batch_sentences]
        engine = [HERE / "tensor2tensor_engine.py", *t2t]
        commands["tensor2tensor"] = [args.t2t_python, "-W", "ignore", *engine]
    return {name: [*map(str, command)] for name, command in commands.items()}


def main() -> None:
    """Time the engines and print a table per beam size."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output_dir", required=True)
    parser.add_argument("--checkpoint", default="averaged")
    parser.add_argument("--source", required=True)
    parser.add_argument("--weights")
    parser.add_argument("--marian_python")
    parser.add_argument("--onmt_python")
    parser.add_argument("--t2t_python")
    parser.add_argument("--t2t_model")
    parser.add_argument("--ctranslate2", nargs="*", default=[], metavar="DIR")
    parser.add_argument("--compute_types", nargs="*", default=["float32", "int8"])
    parser.add_argument("--beam_sizes", nargs="*", type=int, default=[1, 4])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch_tokens", type=int, default=2048, help="ours")
    parser.add_argument("--batch_sentences", type=int, default=32, help="the others")
    args = parser.parse_args()

    with children(commands_of(args)) as engines:
        for beam_size in args.beam_sizes:
            answers = {name: [] for name in engines}
            for _ in range(args.rounds + 1):
                for name, engine in engines.items():
                    answers[name].append(engine.ask(beam_size))
            print_table(beam_size, answers)


def print_table(beam_size: int, answers: dict[str, list[dict]]) -> None:
    """Print speed, first call, memory and equal outputs of every engine."""
    expected = answers[OURS][-1]["ids"]
    tokens = sum(len(ids) + 1 for ids in expected)
    seconds = {
        name: statistics.median(a["seconds"] for a in found[1:])
        for name, found in answers.items()
    }
    print(f"\nbeam {beam_size}: {len(expected)} sentences, {tokens} target tokens")
    print(
        f"{'engine':22}{'sentences/s':>12}{'tokens/s':>10}{'ours / it':>11}"
        f"{'first call':>12}{'peak':>9}{'equal':>7}"
    )
    for name, found in answers.items():
        equal = sum(a == b for a, b in zip(found[-1]["ids"], expected, strict=True))
        print(
            f"{name:22}{len(expected) / seconds[name]:12.1f}"
            f"{tokens / seconds[name]:10.0f}{seconds[name] / seconds[OURS]:11.2f}"
            f"{found[0]['seconds'] - seconds[name]:+10.1f} s"
            f"{found[-1]['gigabytes']:6.2f} GB{equal:7d}",
            flush=True,
        )


if __name__ == "__main__":
    main()
