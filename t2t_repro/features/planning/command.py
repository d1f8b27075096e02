"""`t2t plan`: what a run will cost, before it begins."""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING, Any

from t2t_repro.cli import train
from t2t_repro.cli.flags import number_in_range
from t2t_repro.cli.framework import import_tensorflow
from t2t_repro.cli.training_request import TrainingRequest, requested_training
from t2t_repro.data.manifest import Manifest
from t2t_repro.data.request import requested_settings
from t2t_repro.errors import UsageError
from t2t_repro.features.planning.plan import Plan, plan_training
from t2t_repro.features.planning.plan_text import plan_lines

if TYPE_CHECKING:
    from t2t_repro.features.planning.timing import Timing

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
    plan = plan_training(
        request.problem,
        request.settings,
        requested_settings(request.problem, request.preparation),
        _manifest(args, request),
        num_replicas=args.replicas or max(request.settings.cpu_replicas, 1),
    )
    timing = None
    if args.time_steps:
        import_tensorflow()
        from t2t_repro.features.planning.timing import time_training

        timing = time_training(plan, request.settings, args.time_steps)
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


def _values(plan: Plan, timing: Timing | None) -> dict[str, Any]:
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
