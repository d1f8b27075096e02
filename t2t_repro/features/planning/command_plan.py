"""`t2t plan`: the cost of a training run, before it begins."""

from __future__ import annotations

import argparse
import dataclasses
import json
import textwrap
from typing import TYPE_CHECKING, Any

from t2t_repro.cli import train
from t2t_repro.cli.flags import number_in_range
from t2t_repro.cli.loading import import_tensorflow
from t2t_repro.cli.train import TrainingRequest, requested_training
from t2t_repro.data.batch_plan import shapes_text
from t2t_repro.data.manifest import Manifest
from t2t_repro.data.request import requested_settings
from t2t_repro.errors import UsageError
from t2t_repro.features.planning.training_plan import TrainingPlan, plan_training
from t2t_repro.runs.training_config import resolved_hparams
from t2t_repro.text_tables import aligned, quantity

if TYPE_CHECKING:
    from t2t_repro.features.planning.timing import Timing


LARGEST_TABLE = 12  # rows, one per shape
WIDTH = 88
_UNITS = ("", "k", "M", "G", "T", "P", "E")


def in_units(number: float, unit: str) -> str:
    """Return a number with a decimal prefix, such as "1.25 GB".

    Args:
        number: The number, at least 0.
        unit: Name of its unit.
    """
    prefix = 0
    while number >= 999.5 and prefix < len(_UNITS) - 1:
        number /= 1000
        prefix += 1
    digits = 0 if number >= 100 or (prefix == 0 and number == int(number)) else 1
    digits = 2 if number < 10 and digits else digits
    return f"{number:.{digits}f} {_UNITS[prefix]}{unit}"


def plan_lines(plan: TrainingPlan, timing: Timing | None = None) -> list[str]:
    """Return the lines of a plan, with the shapes of its batches at the end.

    Args:
        plan: The plan.
        timing: Measured time of its updates, or None.
    """
    rows = [
        *_model_rows(plan),
        *_update_rows(plan),
        *_memory_rows(plan),
        *_length_rows(plan),
        _disk_row(plan),
        *_time_rows(plan, timing),
    ]
    return [*aligned(rows), "", *_batch_lines(plan)]


def _model_rows(plan: TrainingPlan) -> list[tuple[str, str, str]]:
    source, target = plan.vocab_sizes
    vocabulary = (
        f"{target:,} entries for both sides"
        if plan.shared_vocabulary
        else f"{source:,} source and {target:,} target entries"
    )
    embeddings = f"{plan.embedding_parameters:,} of them in embeddings and softmax"
    return [
        ("set", plan.hparams_set, f"on {plan.problem}; {vocabulary}"),
        ("parameters", f"{plan.parameters:,}", embeddings),
    ]


def _update_rows(plan: TrainingPlan) -> list[tuple[str, str, str]]:
    per = "token" if plan.epochs else "position, padding included"
    per_token = in_units(plan.flops_per_target_token, "FLOP")
    return [
        (
            "update",
            in_units(plan.flops_per_step, "FLOP"),
            f"{plan.update}; forward, backward",
        ),
        ("", per_token, f"per target {per}"),
    ]


def _memory_rows(plan: TrainingPlan) -> list[tuple[str, str, str]]:
    memory = plan.memory
    largest = "of the largest batch; an estimate"
    rows = [
        ("memory", memory.total, "per replica"),
        ("  weights", memory.weights, "float32"),
        ("  gradients", memory.gradients, "float32"),
        ("  optimizer", memory.optimizer, "Adam's moments, float32"),
        ("  activations", memory.activations, largest),
    ]
    return [(name, in_units(size, "B"), remark) for name, size, remark in rows]


def _length_rows(plan: TrainingPlan) -> list[tuple[str, str, str]]:
    steps = ("steps", f"{plan.train_steps:,}", "")
    if plan.epochs is None:
        return [(*steps[:2], "epochs unknown: no prepared data")]
    epochs = plan.epochs
    left_out = (
        f"; longer pairs, left out: {epochs.left_out:,}" if epochs.left_out else ""
    )
    copies = (
        f" ({epochs.copies_per_pair:,.3g} copies of each)"
        if epochs.copies_per_pair > 1
        else ""
    )
    tokens = f"{epochs.target_tokens_per_step:,.0f} target tokens per update"
    return [
        (*steps[:2], f"{tokens}, without padding"),
        (
            "epochs",
            f"{epochs.epochs:,.1f}",
            f"of {quantity(epochs.steps_per_epoch, 'step')}, "
            f"{quantity(epochs.pairs, 'pair')}"
            f"{copies}{left_out}",
        ),
    ]


def _disk_row(plan: TrainingPlan) -> tuple[str, str, str]:
    disk = plan.disk
    checkpoints = quantity(disk.checkpoints, "checkpoint")
    parts = (
        f"{checkpoints} of {in_units(disk.checkpoint, 'B')}; best and averaged "
        f"models {in_units(disk.weights_only, 'B')}"
    )
    return "disk", in_units(disk.total, "B"), parts


def _time_rows(plan: TrainingPlan, timing: Timing | None) -> list[tuple[str, str, str]]:
    if timing is None:
        return [("time", "not timed", "`t2t plan --time_steps 10` times ten updates")]
    what = (
        f"{timing.seconds_per_step:.3g} s per update of {timing.rows} x "
        f"{timing.length} tokens, {timing.num_replicas} replica(s), median of "
        f"{timing.steps}"
    )
    if plan.single_pass_steps:
        what += f"; the first {plan.single_pass_steps:,} have one pass and are faster"
    once = timing.compilations == 1
    compiling = timing.compilations * timing.compile_seconds / 60
    return [
        ("time", f"{timing.hours(plan.train_steps):.2f} h", what),
        ("", f"{timing.target_tokens_per_second:,.0f}", "target tokens per second"),
        (
            "  first use",
            f"{compiling:.1f} min",
            f"{timing.compile_seconds:.0f} s, "
            + ("once" if once else f"for each of {timing.compilations} shapes"),
        ),
        ("", "", "without reading data, evaluations and checkpoints"),
    ]


def _batch_lines(plan: TrainingPlan) -> list[str]:
    """Return a table of the shapes, or a list if there are many."""
    if len(plan.batches) > LARGEST_TABLE:
        shapes = shapes_text((batch.rows, batch.length) for batch in plan.batches)
        text = f"{quantity(len(plan.batches), 'batch shape')}, pairs x tokens: {shapes}"
        return textwrap.wrap(text, WIDTH, subsequent_indent="  ")
    rows = [("LENGTH", "PAIRS", "TOKENS PER SIDE", "BATCHES PER EPOCH")]
    for batch in plan.batches:
        batches = "" if batch.batches is None else f"{batch.batches:,}"
        tokens = f"{batch.rows * batch.length:,}"
        rows.append((str(batch.length), f"{batch.rows:,}", tokens, batches))
    columns = 3 if plan.epochs is None else 4
    return aligned([row[:columns] for row in rows], right=range(columns))


DESCRIPTION = (
    "Print the size and cost of a training run: parameters, operations, memory, "
    "batches, epochs and disk. Takes the flags of `t2t train`, and needs neither "
    "prepared data nor an --output_dir. With --time_steps, also the hours."
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    train.add_flags(parser)
    planning = parser.add_argument_group("planning")
    planning.add_argument(
        "--time_steps",
        metavar="N",
        type=number_in_range(0, int),
        default=0,
        help="updates to time on this machine, on random text; 10 are enough (default: "
        "0 = answer at once, without hours)",
    )
    planning.add_argument(
        "--replicas",
        metavar="N",
        type=number_in_range(1, int),
        help="replicas that will share a batch (default: --cpu_replicas, or 1)",
    )
    planning.add_argument(
        "--output_format",
        choices=("text", "json"),
        default="text",
        help="a table (default), or one JSON object",
    )


def run(args: argparse.Namespace) -> int:
    """Print the plan."""
    if getattr(args, "ensemble", None) is not None:  # a flag of another feature
        raise UsageError(
            f"received --ensemble {args.ensemble}, expected one model to plan: leave "
            "it out. Every member needs as much memory and disk space."
        )
    request = requested_training(args, required=("hparams_set",))
    hparams = resolved_hparams(request.settings)
    plan = plan_training(
        request.problem,
        request.settings,
        hparams,
        requested_settings(request.problem, request.preparation),
        _manifest(args, request),
        num_replicas=args.replicas or max(request.settings.cpu_replicas, 1),
    )
    timing = None
    if args.time_steps:
        import_tensorflow()
        from t2t_repro.features.planning.timing import time_training

        timing = time_training(plan, request.settings, hparams, args.time_steps)
    if args.output_format == "json":
        print(json.dumps(_values(plan, timing), indent=2))
    else:
        print("\n".join(plan_lines(plan, timing)))
    return 0


def _manifest(args: argparse.Namespace, request: TrainingRequest) -> Manifest | None:
    """Return the description of the prepared data, or None."""
    if args.data_dir is None and args.problem is not None and request.existing is None:
        return None
    return Manifest.load(request.data_dir, request.problem)


def _values(plan: TrainingPlan, timing: Timing | None) -> dict[str, Any]:
    values = dataclasses.asdict(plan)
    values["memory"]["total"] = plan.memory.total
    values["disk"]["total"] = plan.disk.total
    values["timing"] = None
    if timing is not None:
        values["timing"] = dataclasses.asdict(timing) | {
            "hours": timing.hours(plan.train_steps),
            "target_tokens_per_second": timing.target_tokens_per_second,
        }
    return values
