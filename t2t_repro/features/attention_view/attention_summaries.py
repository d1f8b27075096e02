"""Write attention of dev sentences, and branch weights, to event files in training.

The tab "Attention" gets documents; the tab "Images" a picture with tokens as labels.
Pillow draws it: TensorBoard already depends on it, and Matplotlib is an extra.
"""

from __future__ import annotations

import base64
import logging
import math
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from PIL import Image, ImageDraw, ImageFont
from tensorboard.compat.proto import summary_pb2

from t2t_repro.constants import EOS_ID, INPUTS, SELF_ATTENTIONS, TARGETS
from t2t_repro.data.problem import Problem
from t2t_repro.errors import UserError
from t2t_repro.features.attention_view.capture import (
    capture_attention,
    encode_side,
)
from t2t_repro.features.attention_view.event_format import (
    BRANCHES_TAG,
    PLUGIN_NAME,
    pack_branches,
    pack_document,
    pack_title,
    sentence_tag,
)
from t2t_repro.models.attention_weights import attention_weights
from t2t_repro.models.transformer import Transformer
from t2t_repro.runs.branch_weights import branch_values
from t2t_repro.runs.evaluators import TrainingContext
from t2t_repro.text.tokenizer import Tokenizer
from t2t_repro.training.metrics_file import EVAL_SPLIT
from t2t_repro.training.metrics_log import Evaluator, MetricsLog

logger = logging.getLogger(__name__)


IdPair = tuple[list[int], list[int]]
IMAGE_TAG = "samples/encoder_decoder_attention"
# The first of these on the machine. They have Latin, Greek and Cyrillic letters.
FONTS = (
    "DejaVuSans.ttf",
    "NotoSans-Regular.ttf",
    "LiberationSans-Regular.ttf",
    "Arial.ttf",
)
FONT_SIZE = 13
CELL = 18
MARGIN = 12
LONGEST_LABEL, LONGEST_TITLE = 24, 60
MAX_TOKENS = 60
_SIDES = ("queries", "keys")
# White is 0 and dark blue is 1.
_DARK = np.array([8.0, 48.0, 107.0])
_INK, _GRID, _PAPER = (20, 20, 20), (225, 225, 225), (255, 255, 255)


def make_evaluators(training: TrainingContext) -> list[Evaluator]:
    """Return the evaluators that write the data of the tab "Attention".

    Args:
        training: The training run.
    """
    model, hparams = training.model, training.hparams
    # Only the attention layers of this class of models are known.
    if not isinstance(model, Transformer):
        return []
    evaluators = []
    samples = training.settings.attention_samples
    if samples and _shows_attention(model, hparams.self_attention_type):
        evaluators.append(_samples_evaluator(training))
    if hparams.branched_attention != "none":
        evaluators.append(branch_evaluator(model))
    return evaluators


def _shows_attention(model: Transformer, name: str) -> bool:
    """Return whether attention weights can be captured, and log why not."""
    if name in SELF_ATTENTIONS:
        return True
    tokens = tf.constant([[EOS_ID, EOS_ID]])  # Keras warns of a softmax over one value.
    try:
        attention_weights(model, {INPUTS: tokens, TARGETS: tokens})
    except UserError as error:
        logger.warning("TensorBoard gets no attention: %s", error)
        return False
    return True


def _samples_evaluator(training: TrainingContext) -> Evaluator:
    data = training.data
    problem, tokenizers = data.problem, data.tokenizers()
    count, longest = training.settings.attention_samples, training.hparams.max_length
    texts = data.raw_text("dev")
    pairs = sample_pairs(problem, tokenizers, *texts, count=count, longest=longest)
    return attention_evaluator(
        training.model,
        tokenizers,
        pairs,
        languages=(problem.source_language, problem.target_language),
    )


def branch_evaluator(model: Transformer) -> Evaluator:
    """Make the evaluator that writes kappa and alpha for the tab of attention."""

    def evaluate(step: int, log: MetricsLog) -> dict[str, float]:
        write_branches(log, step, branch_values(model))
        return {}

    return evaluate


def sample_pairs(
    problem: Problem,
    tokenizers: tuple[Tokenizer, Tokenizer],
    sources: Sequence[str],
    references: Sequence[str],
    *,
    count: int,
    longest: int,
) -> list[IdPair]:
    """Return the ids of the first pairs that a model can read.

    Args:
        problem: Problem that converts the texts to the forms that the model reads and
            writes.
        tokenizers: Tokenizers of the sources and of the targets.
        sources: Dev sentences.
        references: Their targets.
        count: Number of pairs; fewer if there are fewer.
        longest: Largest number of tokens per side, including EOS.
    """
    pairs: list[IdPair] = []
    for source, reference in zip(sources, references, strict=True):
        if len(pairs) == count:
            break
        try:
            read, written = (
                problem.normalize_source(source),
                problem.encode_target(reference),
            )
            ids = encode_side(tokenizers[0], read, longest, "source")
            target = encode_side(tokenizers[1], written, longest, "target")
            pairs.append((ids, target))
        except UserError:  # empty, too long or not in the vocabulary
            continue
    return pairs


def attention_evaluator(
    model: Transformer,
    tokenizers: tuple[Tokenizer, Tokenizer],
    pairs: Sequence[IdPair],
    languages: tuple[str | None, str | None] = (None, None),
) -> Callable[[int, MetricsLog], dict[str, float]]:
    """Make the evaluator that writes the attention of sample sentences.

    The targets are the references, so that the tokens are the same at all steps and a
    viewer can follow how the attention between them develops.

    Args:
        model: The model in training.
        tokenizers: Tokenizers of the sources and of the targets.
        pairs: Ids of the sources and the targets, from `sample_pairs`.
        languages: Codes of the languages of the sources and of the targets, if known.

    Returns:
        A function that writes to the log and returns no scores.
    """

    def evaluate(step: int, log: MetricsLog) -> dict[str, float]:
        for number, (source, target) in enumerate(pairs):
            attention = capture_attention(
                model,
                tokenizers,
                source,
                target,
                title=f"dev sentence {number + 1}",
                languages=languages,
            )
            write_attention(log, step, number, attention.to_document())
        return {}

    return evaluate


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


def draw_map(document: dict[str, Any], kind: str, title: str) -> np.ndarray | None:
    """Draw the attention of every layer, averaged over its heads.

    Rows of a panel are queries, columns are keys; the weights of each row sum to one.
    Darkness is the square root of the weight, so that small weights can be seen. Panels
    are below each other: TensorBoard makes a picture as narrow as its column. Differs
    from tensor2tensor (`attention_image_summary`), which has no labels.

    Args:
        document: The document of a sentence pair.
        kind: Kind of the map, such as "memory".
        title: Text above the panels.

    Returns:
        Pixels, uint8 `[height, width, 3]`, or None without such a map or without
        tokens.
    """
    for entry in document["maps"]:
        if entry["kind"] == kind:
            sequences = document["sequences"]
            queries, keys = (sequences[entry[s]]["tokens"] for s in _SIDES)
            found = bool(queries and keys)
            return _picture(entry, queries, keys, title) if found else None
    return None


def _picture(
    entry: dict[str, Any], queries: list[str], keys: list[str], title: str
) -> np.ndarray:
    font = _Font()
    weights = layer_means(entry, len(queries), len(keys))[:, :MAX_TOKENS, :MAX_TOKENS]
    if max(len(queries), len(keys)) > MAX_TOKENS:
        title += f", first {MAX_TOKENS} tokens"
    title = font.drawable(title, LONGEST_TITLE)
    rows, columns = (
        # A space mark becomes a dot.
        [font.drawable(t.replace("\u2581", "\u00b7"), LONGEST_LABEL) for t in tokens]
        for tokens in (queries[:MAX_TOKENS], keys[:MAX_TOKENS])
    )
    panels = [
        _panel(layer, rows, columns, f"layer {number}", font)
        for number, layer in enumerate(weights, start=1)
    ]
    width, height = panels[0].size
    top, step = FONT_SIZE + 3 * MARGIN, height + 2 * MARGIN
    width = max(width, font.width(title)) + 2 * MARGIN
    picture = Image.new("RGB", (width, top + len(panels) * step), _PAPER)
    ImageDraw.Draw(picture).text((MARGIN, MARGIN), title, _INK, font.font)
    for number, panel in enumerate(panels):
        picture.paste(panel, (MARGIN, top + number * step))
    return np.asarray(picture)


def layer_means(entry: dict[str, Any], queries: int, keys: int) -> np.ndarray:
    """Return the weights of a map averaged over heads, `[layer, query, key]`."""
    shape = (entry["layers"], entry["heads"], queries, keys)
    flat = np.frombuffer(base64.b64decode(entry["weights"]), "<f2")
    return flat.reshape(shape).astype(np.float32).mean(axis=1)


class _Font:
    """A font of this machine, or Pillow's own, which has ASCII letters only."""

    def __init__(self) -> None:
        self.is_complete = True
        for name in FONTS:
            try:
                self.font = ImageFont.truetype(name, FONT_SIZE)
            except OSError:
                continue
            return
        self.is_complete = False
        self.font = ImageFont.load_default(FONT_SIZE)

    def drawable(self, text: str, longest: int) -> str:
        """Shorten a text, and replace the characters that cannot be drawn."""
        if len(text) > longest:
            text = text[: longest - 3] + "..."
        if not self.is_complete:
            parts = unicodedata.normalize("NFKD", text.replace("\u00b7", "_"))
            letters = "".join(c for c in parts if not unicodedata.combining(c))
            text = letters.encode("ascii", "replace").decode("ascii")
        return "".join(c if c.isprintable() else " " for c in text)

    def width(self, text: str) -> int:
        return math.ceil(self.font.getlength(text))


def _panel(
    weights: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    font: _Font,
) -> Image.Image:
    """Draw one matrix with its labels and its title."""
    share = np.sqrt(np.clip(weights, 0.0, 1.0))[..., None]
    colors = (255.0 + (_DARK - 255.0) * share).astype(np.uint8)
    pixels = colors.repeat(CELL, axis=0).repeat(CELL, axis=1)
    pixels[::CELL] = pixels[:, ::CELL] = _GRID
    left = max(map(font.width, rows)) + MARGIN
    top = max(map(font.width, columns)) + MARGIN + FONT_SIZE + MARGIN
    height, width = pixels.shape[:2]
    panel = Image.new("RGB", (left + width + 1, top + height + 1), _PAPER)
    panel.paste(Image.fromarray(pixels), (left, top))
    draw = ImageDraw.Draw(panel)
    draw.rectangle((left, top, left + width, top + height), outline=_GRID)
    draw.text((left, 0), title, _INK, font.font)
    for row, label in enumerate(rows):
        middle = top + row * CELL + CELL // 2
        draw.text((left - 5, middle), label, _INK, font.font, anchor="rm")
    for column, label in enumerate(columns):  # labels read from bottom to top
        text = Image.new("RGB", (max(font.width(label), 1), CELL - 2), _PAPER)
        place = (0, (CELL - 2) // 2)
        ImageDraw.Draw(text).text(place, label, _INK, font.font, anchor="lm")
        x = left + column * CELL + 1
        panel.paste(text.rotate(90, expand=True), (x, top - 4 - text.width))
    return panel
