"""Log what a training run is about to do."""

from __future__ import annotations

import logging

import keras

from t2t_repro.data.batch_plan import BatchPlan, shapes_text
from t2t_repro.data.pipeline import left_out_by_packing, readable
from t2t_repro.data.prepared import PreparedData
from t2t_repro.runs.run import Run
from t2t_repro.text_tables import quantity

logger = logging.getLogger(__name__)


def log_summary(
    run: Run, data: PreparedData, model: keras.Model, plan: BatchPlan, jit_compile: bool
) -> None:
    """Log the model, the data left out, and the shapes of the batches.

    Args:
        run: Description of the run.
        data: Prepared data.
        model: The model.
        plan: Shapes of the batches.
        jit_compile: Whether XLA compiles the step of each shape.
    """
    hparams = run.hparams
    logger.info(
        "%s on %s: %s parameters",
        run.hparams_set,
        run.problem,
        f"{model.count_params():,}",
    )
    log_left_out(data, hparams.max_length, plan)
    source_length, length = plan.packed_lengths
    logger.info(
        "%s, rows x length: %s%s%s",
        quantity(len(plan.shapes), "batch shape"),
        shapes_text(plan.shapes),
        f" (of sources: {source_length})" if source_length < length else "",
        "; XLA compiles each once" if jit_compile else "",
    )


def log_left_out(data: PreparedData, max_length: int, plan: BatchPlan) -> None:
    """Log how many pairs training and evaluation leave out, if any.

    Args:
        data: Prepared data.
        max_length: Tokens of the longest side of a pair.
        plan: Shapes of the batches.

    Raises:
        UserError: If the prepared data cannot be read.
    """
    for split, counts in data.manifest.splits.items():
        left_out = counts.longer_than(max_length)
        if left_out and split != "test":
            logger.warning(
                "%s: left out %d of %d pairs, which are longer than max_length=%d",
                split,
                left_out,
                counts.pairs_written,
                max_length,
            )
    if not plan.packed_length or plan.packed_lengths[0] >= plan.boundaries[-1]:
        return
    pairs = left_out_by_packing(data.shards("train"), plan)
    left_out = sum(1 for _ in readable(pairs))
    if left_out:
        logger.warning(
            "train: left out %d more pairs, whose sources are longer than "
            "packed_source_length=%d",
            left_out,
            plan.packed_source_length,
        )
