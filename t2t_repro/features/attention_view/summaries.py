"""Write attention, and kappa and alpha, into a run's event files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorboard.compat.proto import summary_pb2

from t2t_repro.features.attention_view.event_format import (
    BRANCHES_TAG,
    PLUGIN_NAME,
    pack_branches,
    pack_document,
    pack_title,
    sentence_tag,
)
from t2t_repro.features.attention_view.map_image import draw_map
from t2t_repro.training.metrics_file import EVAL_SPLIT
from t2t_repro.training.metrics_log import MetricsLog

IMAGE_TAG = "samples/encoder_decoder_attention"


def write_attention(
    log: MetricsLog, step: int, number: int, document: dict[str, Any]
) -> None:
    """Write a sentence pair for the tabs "Attention" and "Images".

    Args:
        log: Log of the run.
        step: Number of completed updates.
        number: Number of the sentence pair, from 0. It must stay the same at all steps.
        document: The document of `Attention.to_document`.
    """
    title = str(document.get("title") or f"sentence {number + 1}")
    words = document.get("first_words")
    image = draw_map(document, "memory", f"{title}, step {step}")
    with log.events(EVAL_SPLIT, step):
        tf.summary.write(
            sentence_tag(f"sentence_{number}"),
            tf.constant([pack_document(document)]),
            metadata=_metadata(
                f"{title}: {words}" if words else title,
                summary_pb2.DATA_CLASS_BLOB_SEQUENCE,
            ),
        )
        if image is not None:
            tf.summary.image(f"{IMAGE_TAG}/sentence_{number}", image[None])


def write_branches(
    log: MetricsLog, step: int, layers: Sequence[dict[str, Any]]
) -> None:
    """Write kappa and alpha of every layer for the tab "Attention".

    Args:
        log: Log of the run.
        step: Number of completed updates.
        layers: Dictionaries with "name", such as "encoder layer 1", and "kappa" and
            "alpha", one number per branch.
    """
    with log.events(EVAL_SPLIT, step):
        tf.summary.write(
            BRANCHES_TAG,
            tf.constant(pack_branches(layers)),
            metadata=_metadata("branches", summary_pb2.DATA_CLASS_TENSOR),
        )


def _metadata(title: str, data_class: int) -> summary_pb2.SummaryMetadata:
    plugin_data = summary_pb2.SummaryMetadata.PluginData(
        plugin_name=PLUGIN_NAME, content=pack_title(title)
    )
    return summary_pb2.SummaryMetadata(
        display_name=title, plugin_data=plugin_data, data_class=data_class
    )
