"""Fill TensorBoard's tab "HParams", in which runs can be sorted by their scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from tensorboard.plugins.hparams import api, api_pb2
from tensorboard.plugins.hparams import summary as hparams_summary

from t2t_repro.training.metrics_file import EVAL_SPLIT
from t2t_repro.training.metrics_log import MetricsLog


def write_hparams(log: MetricsLog, values: Mapping[str, Any]) -> None:
    """Write the settings of a run when it starts.

    They are with the events of the evaluations. TensorBoard takes the last value of
    every metric there as the score of the run.

    Args:
        log: Log of the run, whose folder names its row of the table.
        values: Settings by name. Values other than numbers and truth values are shown
            as text.
    """
    path = log.output_dir.resolve()
    shown = {
        name: value if isinstance(value, (bool, int, float)) else str(value)
        for name, value in values.items()
    }
    with log.events(EVAL_SPLIT, 0):
        api.hparams(shown, trial_id=f"{path.parent.name}/{path.name}")


def write_completion(log: MetricsLog) -> None:
    """Mark a run as successful in the table.

    TensorBoard keeps the first mark, so a run that is to be resumed must have none.

    Args:
        log: Log of the run.
    """
    summary = hparams_summary.session_end_pb(api_pb2.STATUS_SUCCESS)
    with log.events(EVAL_SPLIT, 0):
        tf.summary.experimental.write_raw_pb(summary.SerializeToString(), step=0)
