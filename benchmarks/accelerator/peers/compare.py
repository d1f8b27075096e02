"""Compare training and decoding with PyTorch's, on one accelerator.

Our engine runs on Keras's JAX backend. Models have the same sizes and random weights,
and batches random ids without padding. Each engine runs in its own process; the engines
take turns, and are stopped in between. The table has medians over the turns, and the
median of our speed divided by theirs.

    KERAS_BACKEND=jax XLA_PYTHON_CLIENT_PREALLOCATE=false PYTHONPATH=. \
        python -m benchmarks.accelerator.peers.compare --model transformer_big

With `--task decode`, the engines translate with beam search, and every output has twice
as many tokens as its source. MarianMT needs the package `transformers`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys

from benchmarks.accelerator.jax_step import PRECISIONS
from benchmarks.accelerator.measure import VOCAB_SIZE
from benchmarks.accelerator.peers.job import Job
from benchmarks.accelerator.program import run_program
from benchmarks.child import Child, children
from benchmarks.training.arithmetic import Round, Shape, matmul_share, median_ratio
from benchmarks.training.worker import WARM_UP
from t2t_repro import catalogue
from t2t_repro.text_tables import aligned

OURS = "t2t_repro"
# Name -> kind and mode; see `torch_engine.py`.
ENGINES = {
    "transformer": ("transformer", "eager"),
    "transformer_compiled": ("transformer", "compile"),
    "marian": ("marian", "eager"),
    "marian_compiled": ("marian", "compile"),
}
SHAPES = {"train": "392x64", "decode": "64x32"}
PACKAGE = "benchmarks.accelerator.peers"


def job_of(args: argparse.Namespace) -> Job:
    """Return the job that the flags describe."""
    hparams = catalogue.hparams(args.model).parse(args.hparams).resolved()
    rows, length = map(int, (args.shape or SHAPES[args.task]).split("x"))
    return Job(
        task=args.task,
        layers=hparams.num_hidden_layers,
        width=hparams.hidden_size,
        filter=hparams.filter_size,
        heads=hparams.num_heads,
        vocab_size=args.vocab_size,
        dropout=hparams.layer_prepostprocess_dropout,
        smoothing=hparams.label_smoothing,
        precision=args.precision,
        rows=rows,
        length=length,
        beam_size=args.beam_size,
        matmul_size=args.matmul_size,
    )


def commands_of(args: argparse.Namespace, job: Job) -> dict[str, list[str]]:
    """Return the command of each engine, ours first."""
    text = json.dumps(dataclasses.asdict(job))
    commands = {OURS: [sys.executable, "-m", f"{PACKAGE}.ours", text]}
    for name in args.engines:
        torch = [sys.executable, "-m", f"{PACKAGE}.torch_engine", text]
        commands[name] = [*torch, *ENGINES[name]]
    return commands


def measure(
    engines: dict[str, Child], rounds: int, seconds: float
) -> tuple[dict[str, list[Round]], list[float]]:
    """Let the engines work in turn.

    Returns:
        The turns of each engine, and the matmul rate before each round.
    """
    for child in engines.values():
        child.ask(WARM_UP)
    turns: dict[str, list[Round]] = {name: [] for name in engines}
    rates = []
    for _ in range(rounds):
        rates.append(engines[OURS].ask("matmul")["rate"])
        for name, child in engines.items():
            turns[name].append(Round.from_answer(child.ask(seconds)))
    return turns, rates


def table(job: Job, turns: dict[str, list[Round]], rates: list[float]) -> list[str]:
    """Return the lines of the table."""
    shape = Shape(job.layers, job.width, job.filter, job.heads)
    speeds = {name: [x.tokens_per_second for x in own] for name, own in turns.items()}
    lines = [
        ["engine", "target tokens/s", "sentences/s", "ours / it", "of matmul rate"]
    ]
    for name, own in turns.items():
        speed = statistics.median(speeds[name])
        sentences = speed / (job.length if job.task == "train" else job.output_length)
        share = matmul_share(own, rates, shape, job.vocab_size)
        ratio = median_ratio(speeds[OURS], speeds[name])
        shown = f"{share:.1%}" if job.task == "train" else ""
        lines.append(
            [name, f"{speed:,.0f}", f"{sentences:,.1f}", f"{ratio:.2f}", shown]
        )
    return aligned(lines, right=range(1, len(lines[0])))


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the program."""
    add = parser.add_argument
    add("--task", choices=SHAPES, default="train")
    add("--model", default="transformer_base", help="hparams set (%(default)s)")
    add("--hparams", default="", help="changes to the set, as name=value,name=value")
    add("--precision", choices=PRECISIONS, default="bfloat16")
    add("--shape", help=f"sentence pairs x tokens ({SHAPES})")
    add("--vocab_size", type=int, default=VOCAB_SIZE)
    add("--beam_size", type=int, default=4)
    add("--matmul_size", type=int, default=8192, help="rows and columns (%(default)s)")
    add("--engines", nargs="*", choices=ENGINES, default=[*ENGINES])
    add("--rounds", type=int, default=5)
    add("--seconds", type=float, default=5.0, help="length of a turn (%(default)s)")


def run(args: argparse.Namespace) -> None:
    """Time the engines and print the table."""
    job = job_of(args)
    print(job)
    with children(commands_of(args, job)) as engines:
        turns, rates = measure(engines, args.rounds, args.seconds)
    print(f"matmul: {statistics.median(rates) / 1e12:.3f} TFLOP/s")
    print(*table(job, turns, rates), sep="\n")


if __name__ == "__main__":
    sys.exit(run_program(__doc__, add_flags, run))
