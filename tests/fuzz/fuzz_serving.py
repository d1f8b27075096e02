"""Send random strings to a SavedModel and to the same system in memory.

    python -m tests.fuzz.fuzz_serving --output_dir run --export_dir translator \
        --inputs 20000 --seed 1

For every batch of random size, the script checks that all signatures answer, that
`serving_default` and `Translator` (the library of `t2t decode`) write the same text in
the same order, that a text without a visible character has an empty translation with
score 0, and that a sample of rows has the same translation alone. Invalid UTF-8
is compared after `bytes.decode(errors="replace")`. Give the `--decode_hparams` of the
export, if it has any.

Two batches of different sizes may round differently. Where two hypotheses are equally
probable up to rounding, the outputs may differ; such ties are counted and shown. Any
other difference is a failure. Each batch has its own seed, so `--first_batch` repeats a
failure without the batches before it.
"""

from __future__ import annotations

import argparse
import dataclasses
import logging
import math
import random
import sys
import time
from collections.abc import Mapping
from typing import Any

from tests.support.hard_text import random_hard_text, shows_nothing

logger = logging.getLogger(__name__)

LARGEST_BATCH = 64
TIE = 1e-4  # nats, between scores


@dataclasses.dataclass
class Report:
    """Results of a run.

    Attributes:
        inputs: Number of strings.
        truncated: Number of those that were cut.
        blank: Number of those without a visible character.
        ties: Descriptions of differences that are due to rounding.
        failures: Descriptions of all other differences and errors.
    """

    inputs: int = 0
    truncated: int = 0
    blank: int = 0
    ties: list[str] = dataclasses.field(default_factory=list)
    failures: list[str] = dataclasses.field(default_factory=list)


def hard_batch(seed: int, number: int) -> list[bytes]:
    """Return the strings of a batch: the same for the same seed and number."""
    source = random.Random(f"{seed} {number}")
    size = source.randint(0, LARGEST_BATCH)
    return [random_hard_text(source) for _ in range(size)]


def check_batch(
    signatures: Mapping[str, Any], translator: Any, batch: list[bytes], report: Report
) -> None:
    """Translate a batch both ways, and add all differences to the report."""
    import tensorflow as tf

    report.inputs += len(batch)
    found = _served(signatures["serving_default"], inputs=tf.constant(batch, tf.string))
    if any(len(values) != len(batch) for values in found.values()):
        report.failures.append(f"{len(batch)} inputs, other numbers of outputs")
        return
    report.truncated += sum(found["truncated"])
    given = [text.decode("utf-8", "replace") for text in batch]
    for row, hypotheses in enumerate(translator.translate(given)):
        text, score = hypotheses[0].text, hypotheses[0].score
        _compare_row(found, row, text, score, batch[row], report)
        if shows_nothing(given[row]):
            report.blank += 1
            if found["outputs"][row] or found["scores"][row]:
                report.failures.append(f"row {row} {batch[row][:80]!r}: not empty")
    _check_sample(signatures, batch, found, report)


def _compare_row(
    found: dict[str, list], row: int, text: str, score: float, given: bytes, report
) -> None:
    served = found["outputs"][row].decode()
    # Of a source that was cut, the first pieces are translated.
    if served == text or (found["truncated"][row] and text.startswith(served)):
        return
    difference = abs(found["scores"][row] - score)
    line = f"row {row} {given[:80]!r}: {served[:80]!r}, expected {text[:80]!r}"
    kind = report.ties if difference < TIE else report.failures
    kind.append(f"{line} (scores differ by {difference:.1e})")


def _check_sample(
    signatures: Mapping[str, Any], batch: list[bytes], found: dict, report: Report
) -> None:
    """Check some rows alone, and the other signatures on them."""
    import tensorflow as tf

    for row in [len(batch) // 2] if batch else []:
        inputs = tf.constant([batch[row]])
        alone = _served(signatures["serving_default"], inputs=inputs)
        text = alone["outputs"][0].decode()
        _compare_row(found, row, text, alone["scores"][0], batch[row], report)
        every = _served(signatures["n_best"], inputs=inputs)
        best, scores = every["outputs"][0][0].decode(), every["scores"][0]
        _compare_row(alone, 0, best, scores[0], batch[row], report)
        if scores != sorted(scores, reverse=True):
            report.failures.append(f"row {row}: n_best is not in order: {scores}")
    # Each input is paired with another one, which may be anything.
    pairs = {"inputs": tf.constant(batch, tf.string)[:4]}
    pairs["targets"] = pairs["inputs"][::-1]
    for name in ("score", "attention"):
        scores = _served(signatures[name], **pairs)["scores"]
        if len(scores) != len(pairs["inputs"]) or not all(map(math.isfinite, scores)):
            report.failures.append(f"{name}: {scores}")


def _served(signature: Any, **tensors: Any) -> dict[str, list]:
    return {
        name: value.numpy().tolist() for name, value in signature(**tensors).items()
    }


def fuzz(
    signatures: Mapping[str, Any],
    translator: Any,
    inputs: int,
    seed: int,
    first_batch: int = 0,
) -> Report:
    """Check batches until there were enough inputs; see the module."""
    report, number = Report(), first_batch
    while report.inputs < inputs:
        known = len(report.failures), len(report.ties)
        try:
            check_batch(signatures, translator, hard_batch(seed, number), report)
        except Exception as error:  # whatever it is, it is what we are looking for
            report.failures.append(f"{type(error).__name__}: {str(error)[:500]}")
        for lines, before in zip((report.failures, report.ties), known, strict=True):
            for index in range(before, len(lines)):
                lines[index] = f"batch {number}: {lines[index]}"
        number += 1
        if number % 25 == 0:
            logger.info("batch %d: %d inputs", number, report.inputs)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description="Send random strings to a SavedModel.")
    parser.add_argument("--output_dir", required=True, help="folder of the run")
    parser.add_argument("--export_dir", required=True, help="folder of the SavedModel")
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().getrandbits(32)
    )
    parser.add_argument("--first_batch", type=int, default=0)
    parser.add_argument("--decode_hparams", default="", help="those of the export")
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)

    import tensorflow as tf
    import tensorflow_text  # noqa: F401  the operations of the SavedModel

    from t2t_repro.runs import System
    from t2t_repro.settings.decode_hparams import DecodeHParams

    logging.basicConfig()
    logger.setLevel(logging.INFO)
    logging.getLogger("t2t_repro").setLevel(logging.ERROR)
    signatures = tf.saved_model.load(args.export_dir).signatures
    hparams = DecodeHParams().parse_for("export", args.decode_hparams)
    translator = System.load(args.output_dir).translator(hparams)
    start = time.perf_counter()
    report = fuzz(signatures, translator, args.inputs, args.seed, args.first_batch)
    seconds = time.perf_counter() - start
    for kind, lines in (("tie", report.ties), ("failure", report.failures)):
        for line in lines:
            print(f"{kind}: {line}")
    print(
        f"{report.inputs} inputs, {report.truncated} truncated, {report.blank} blank, "
        f"{len(report.ties)} ties, {len(report.failures)} failures, {seconds:.0f} s"
    )
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
