"""The figures of a benchmark as a table, as JSON, and beside published ones."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from benchmarks.accelerator.measure import Measurement
from t2t_repro.text_tables import aligned

GIBIBYTE = 2**30
DASH = "-"


@dataclasses.dataclass(frozen=True)
class Published:
    """A published speed of training.

    Attributes:
        source: Who published it, and where.
        tokens_per_second: Target tokens per second on all devices together.
        devices: Number of devices.
        device: Kind of the devices.
    """

    source: str
    tokens_per_second: float
    devices: int
    device: str

    @property
    def per_device(self) -> float:
        """Target tokens per second and device."""
        return self.tokens_per_second / self.devices


# The paper's batch: "approximately 25000 source tokens and 25000 target tokens"
# (section 5.1), in steps of 0.4 s and 1.0 s on eight P100 (section 5.2).
PAPER_TOKENS = 25_000
PUBLISHED = {
    "transformer_base": (
        Published(
            "Vaswani et al. 2017, section 5.2, 0.4 s", PAPER_TOKENS / 0.4, 8, "P100"
        ),
    ),
    "transformer_big": (
        Published(
            "Vaswani et al. 2017, section 5.2, 1.0 s", PAPER_TOKENS / 1.0, 8, "P100"
        ),
        Published(
            "NVIDIA DeepLearningExamples, PyTorch Transformer, mixed precision",
            82_059,
            1,
            "A100",
        ),
        Published(
            "NVIDIA DeepLearningExamples, PyTorch Transformer, TF32",
            51_057,
            1,
            "A100",
        ),
    ),
}

_HEADINGS = (
    "rows x length",
    "ms per step",
    "target tokens/s",
    "of matmul rate",
    "step GiB",
    "peak GiB",
    "compile s",
)


def table(results: Sequence[Measurement]) -> list[str]:
    """Return the lines of a table of all shapes, followed by the shapes that failed."""
    measured = [result for result in results if result.failure is None]
    lines = []
    if measured:
        rows = [_HEADINGS, *map(_cells, measured)]
        lines = aligned(rows, right=range(1, len(_HEADINGS)))
    lines += [
        f"{result.rows}x{result.length} skipped: {result.failure}"
        for result in results
        if result.failure is not None
    ]
    return lines


def _cells(result: Measurement) -> tuple[str, ...]:
    return (
        f"{result.rows}x{result.length}",
        f"{1e3 * result.step_seconds:,.1f}",
        f"{result.target_tokens_per_second:,.0f}",
        f"{result.share_of_matmul_rate:.1%}",
        _gibibytes(result.step_bytes),
        _gibibytes(result.peak_bytes),
        f"{result.compile_seconds:.1f}",
    )


def _gibibytes(number: int | None) -> str:
    return DASH if number is None else f"{number / GIBIBYTE:.2f}"


def comparison(model: str, results: Sequence[Measurement]) -> list[str]:
    """Compare the fastest shape with published speeds per device.

    Args:
        model: Name of the hparams set.
        results: The measurements.

    Returns:
        One line per published speed; none if no shape was measured or nothing was
        published for the model.
    """
    speeds = [
        result.target_tokens_per_second
        for result in results
        if result.target_tokens_per_second is not None
    ]
    if not speeds:
        return []
    return [
        f"{max(speeds) / figure.per_device:.2f} x {figure.source}: "
        f"{figure.tokens_per_second:,.0f} target tokens/s on {figure.devices} "
        f"{figure.device}, {figure.per_device:,.0f} on each"
        for figure in PUBLISHED.get(model, ())
    ]


def as_json(facts: dict[str, Any], results: Sequence[Measurement]) -> str:
    """Return the facts of a run and its measurements as a JSON object.

    Args:
        facts: Values that hold for all shapes, by name.
        results: The measurements, which become the value of "shapes".
    """
    shapes = [dataclasses.asdict(result) for result in results]
    return json.dumps({**facts, "shapes": shapes}, indent=2) + "\n"
