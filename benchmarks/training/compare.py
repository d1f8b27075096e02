"""Compare the speed of training in several toolkits, on the same pairs of sentences.

Speed is real target tokens per second: every toolkit makes its own batches, and padding
counts for nothing. Each engine runs in its own process and interpreter. The engines
take turns of `--seconds`, and are stopped in between; the table shows medians of
`--rounds` turns, and the median over the rounds of our speed divided by theirs. Every
engine first makes an update of each shape that it compiles; that time is a column of
its own.

    python -m benchmarks.training.compare --shape small --train_source train.en \
        --train_target train.de --data_dir DATA \
        --marian_python MARIAN/bin/python --onmt_python ONMT/bin/python \
        --t2t_python T2T/bin/python

DATA is a folder for the prepared data, which is kept. MARIAN, ONMT and T2T are
environments as in `benchmarks/decoding/compare.py`. All models are post-norm, with
shared embeddings, one vocabulary, dropout 0.1 after every sublayer and none elsewhere,
label smoothing 0.1 and Adam, in float32; with `--bfloat16`, ours and Hugging Face's
also train with products in bfloat16. The batches have at most `--batch_tokens`
positions of the longer side; for Hugging Face, whose batches have a fixed number of
sentences, as many of average length as fit into them. They go from long to short, 50 at
a time, so a turn should be long enough for 50 updates.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.child import Child, children
from benchmarks.training.arithmetic import (
    Round,
    Shape,
    matmul_share,
    median_ratio,
    padding_share,
)
from benchmarks.training.worker import WARM_UP

HERE = Path(__file__).resolve().parent
OURS = "t2t_repro"
SHAPES = {
    "small": Shape(layers=2, width=128, filter=512, heads=4),
    "base": Shape(layers=6, width=512, filter=2048, heads=8),
}
BATCH_TOKENS = {"small": 2048, "base": 1024}
# The sizes are replaced, and the buckets suit the lengths of Multi30k.
HPARAMS_SET = "transformer_base"
SHORTEST_BUCKET, BUCKET_STEP = 12, 1.25
DROPOUT, LABEL_SMOOTHING, LONGEST = 0.1, 0.1, 64
# The default of the C library: any of the user's settings stops `keep_freed_memory`.
RETURN_MEMORY = "MALLOC_PERTURB_=0"
BFLOAT16 = "activation_dtype=bfloat16"


def prepare(args: argparse.Namespace) -> dict[str, float]:
    """Prepare the data in its own process; see `data.py`."""
    given = [args.train_source, args.train_target, args.vocab_size, LONGEST]
    command = [sys.executable, HERE / "data.py", *given, args.data_dir]
    output = subprocess.run(
        [*map(str, command)], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    return json.loads(output.splitlines()[-1])


def hparams_of(shape: Shape, batch_tokens: int, extra: str) -> str:
    """Return our changes to the hparams set.

    Args:
        shape: Sizes of the model.
        batch_tokens: Positions of the longer side in a batch.
        extra: More changes, or "".
    """
    values = {
        "hidden_size": shape.width,
        "filter_size": shape.filter,
        "num_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "layer_prepostprocess_dropout": DROPOUT,
        "label_smoothing": LABEL_SMOOTHING,
        "max_length": LONGEST,
        "min_length_bucket": SHORTEST_BUCKET,
        "length_bucket_step": BUCKET_STEP,
        "batch_size": batch_tokens,
    }
    changes = [f"{name}={value}" for name, value in values.items()]
    return ",".join([*changes, *filter(None, [extra])])


def commands_of(
    args: argparse.Namespace, shape: Shape, data: dict[str, float]
) -> dict[str, list[str]]:
    """Return the commands of the engines that the flags name, ours first.

    Args:
        args: The flags.
        shape: Sizes of the model.
        data: Facts about the data; see `data.py`.
    """
    folder, threads, tokens = args.data_dir, args.threads, args.batch_tokens
    sizes = json.dumps(
        dataclasses.asdict(shape)
        | {"vocab_size": data["vocab_size"], "longest": LONGEST}
        | {"dropout": DROPOUT, "smoothing": LABEL_SMOOTHING}
    )
    commands = our_commands(args, shape)
    if args.marian_python:
        sentences = max(1, round(tokens / data["longer_side"]))
        marian = [args.marian_python, "-m", "benchmarks.training.marian"]
        marian += [folder, sizes, sentences, threads]
        commands["Hugging Face"] = [*marian, "float32"]
        if args.bfloat16:
            commands["Hugging Face bf16"] = [*marian, "bfloat16"]
    for mode in args.onmt_modes if args.onmt_python else []:
        onmt = [HERE / "onmt.py", folder, sizes, tokens, threads, mode]
        commands[f"OpenNMT-tf {mode}"] = [args.onmt_python, *onmt]
    if args.t2t_python:
        t2t = [HERE / "tensor2tensor_engine.py", folder, sizes, tokens, threads]
        commands["tensor2tensor"] = [args.t2t_python, "-W", "ignore", *t2t]
    return {name: [*map(str, command)] for name, command in commands.items()}


def our_commands(args: argparse.Namespace, shape: Shape) -> dict[str, list[object]]:
    """Return the commands of this package, the one that others are compared with first.

    Args:
        args: The flags.
        shape: Sizes of the model.
    """

    def command(extra: str) -> list[object]:
        hparams = hparams_of(shape, args.batch_tokens, extra)
        program = [sys.executable, HERE / "ours.py", args.data_dir]
        return [*program, HPARAMS_SET, hparams, args.threads]

    commands = {OURS: command(args.hparams)}
    if args.return_memory:
        commands["memory returned"] = ["env", RETURN_MEMORY, *commands[OURS]]
    if args.bfloat16:
        both = ",".join(filter(None, [BFLOAT16, args.hparams]))
        commands[f"{OURS} bf16"] = command(both)
    return commands


@dataclasses.dataclass
class Measured:
    """Results of one engine.

    Attributes:
        warm_up: The answer to "warm_up": "seconds" and "shapes".
        rounds: Its turns.
        gigabytes: Peak memory at the end.
    """

    warm_up: dict[str, float]
    rounds: list[Round] = dataclasses.field(default_factory=list)
    gigabytes: float = 0.0

    @property
    def speeds(self) -> list[float]:
        """Real target tokens per second in each round."""
        return [turn.tokens_per_second for turn in self.rounds]


def measure(
    engines: dict[str, Child], rounds: int, seconds: float
) -> tuple[dict[str, Measured], list[float]]:
    """Let the engines train in turn.

    Args:
        engines: The engines by name, ours among them.
        rounds: Number of turns of each engine.
        seconds: Length of a turn.

    Returns:
        The results by engine, and the matmul rate in each round in operations per
        second.
    """
    results = {name: Measured(child.ask(WARM_UP)) for name, child in engines.items()}
    rates = []
    for _ in range(rounds):
        rates.append(engines[OURS].ask("matmul")["rate"])
        for name, child in engines.items():
            answer = child.ask(seconds)
            results[name].rounds.append(Round.from_answer(answer))
            results[name].gigabytes = answer["gigabytes"]
    return results, rates


def table_lines(
    results: dict[str, Measured], rates: list[float], shape: Shape, vocab_size: int
) -> list[str]:
    """Return the lines of the table.

    Args:
        results: Results by engine.
        rates: Matmul rate in each round.
        shape: Sizes of the model.
        vocab_size: Entries of the vocabulary.
    """
    lines = [
        f"{'engine':18}{'target tokens/s':>16}{'ours / it':>11}{'padding':>9}"
        f"{'updates':>9}{'of matmul':>11}{'first updates':>22}{'peak':>9}"
    ]
    ours = results[OURS].speeds
    for name, found in results.items():
        batches = [batch for turn in found.rounds for batch in turn.batches]
        share = matmul_share(found.rounds, rates, shape, vocab_size)
        first = f"{found.warm_up['seconds']:.1f} s, {found.warm_up['shapes']} shapes"
        lines.append(
            f"{name:18}{statistics.median(found.speeds):16.0f}"
            f"{median_ratio(ours, found.speeds):11.2f}{padding_share(batches):9.1%}"
            f"{len(batches):9d}{share:11.0%}{first:>22}{found.gigabytes:6.2f} GB"
        )
    return lines


def parse_flags() -> argparse.Namespace:
    """Read the flags."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shape", choices=SHAPES, default="small")
    parser.add_argument("--train_source", required=True)
    parser.add_argument("--train_target", required=True)
    parser.add_argument("--data_dir", required=True, help="for the prepared data")
    parser.add_argument("--vocab_size", type=int, default=8000)
    parser.add_argument(
        "--batch_tokens",
        type=int,
        help=f"positions per batch and side; by default {BATCH_TOKENS}",
    )
    parser.add_argument("--hparams", default="", help="more changes to ours")
    parser.add_argument(
        "--return_memory",
        action="store_true",
        help="also train with ours while the C library returns freed memory",
    )
    parser.add_argument(
        "--bfloat16", action="store_true", help="also train with products in bfloat16"
    )
    parser.add_argument("--marian_python")
    parser.add_argument("--onmt_python")
    parser.add_argument("--t2t_python")
    parser.add_argument("--onmt_modes", nargs="*", default=["graph", "xla"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=30.0)
    args = parser.parse_args()
    args.batch_tokens = args.batch_tokens or BATCH_TOKENS[args.shape]
    return args


def main() -> None:
    """Prepare the data, time the engines and print the table."""
    args = parse_flags()
    shape, data = SHAPES[args.shape], prepare(args)
    with children(commands_of(args, shape, data)) as engines:
        results, rates = measure(engines, args.rounds, args.seconds)
    print(
        f"{args.shape}: {shape}, {data['vocab_size']} subwords, {data['pairs']} pairs, "
        f"batches of {args.batch_tokens} tokens, {args.threads} threads, "
        f"{args.rounds} rounds of {args.seconds:.0f} s; "
        f"matmul {statistics.median(rates) / 1e9:.0f} GFLOP/s"
    )
    print("\n".join(table_lines(results, rates, shape, data["vocab_size"])))


if __name__ == "__main__":
    main()
