"""Log a summary of a training run, and warn of an unlikely dev set."""

from __future__ import annotations

import collections
import dataclasses
import logging
import math
from collections.abc import Sequence

import keras

from t2t_repro.constants import INPUTS, TARGETS
from t2t_repro.data.batch_plan import BatchPlan, shapes_text
from t2t_repro.data.pipeline import Shards, left_out_by_packing, read_examples, readable
from t2t_repro.data.prepared import PreparedData
from t2t_repro.runs.run import Run
from t2t_repro.text import Tokenizer
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


TRAINING_PAIRS, DEV_PAIRS = 4_000, 1_000
# Measured as multiples of unseen training text, on models of Multi30k's captions: its
# own dev set 1.00, English news 1.85, French news 2.75. Text of another domain is worth
# a warning, too.
FOREIGN = 1.5
# The other side's model must be better by this factor: 1.43 and 1.52 if Multi30k's
# sides are swapped. The sides of a problem on symbols may well be alike.
SWAPPED = 1.1
# Share of pairs with equal sides, beyond that of the training text.
COPIED = 0.5

Pair = tuple[str, str]


class SubwordModel:
    """Unigram probabilities of the subwords of some lines, with add-one smoothing.

    Args:
        tokenizer: Tokenizer of the lines.
        lines: Text that the model learns from.
    """

    def __init__(self, tokenizer: Tokenizer, lines: Sequence[str]) -> None:
        self._tokenizer = tokenizer
        encoded = tokenizer.encode_batch(lines)
        self._counts = collections.Counter(token for ids in encoded for token in ids)
        self._total = sum(self._counts.values()) + tokenizer.vocab_size

    def bits_per_character(self, lines: Sequence[str]) -> float:
        """Return the cost of lines in bits per character."""
        ids = [token for line in self._tokenizer.encode_batch(lines) for token in line]
        counts = collections.Counter(ids)
        bits = sum(
            -count * math.log2((self._counts[token] + 1) / self._total)
            for token, count in counts.items()
        )
        return bits / max(sum(map(len, lines)), 1)


@dataclasses.dataclass(frozen=True)
class SideCosts:
    """Bits per character of one side of a dev set.

    Attributes:
        own: Under the model of the same side of the training text.
        other: Under the model of the other side.
        unseen: Of unseen training text of the same side, under the first model.
        other_unseen: The same for the other side.
    """

    own: float
    other: float
    unseen: float
    other_unseen: float

    @property
    def is_foreign(self) -> bool:
        """Whether the text is unlike the training text of its side."""
        return self.own > FOREIGN * self.unseen

    @property
    def is_other_side(self) -> bool:
        """Whether the text is more like the other side of the training text."""
        is_likely = self.other <= FOREIGN * self.other_unseen
        return is_likely and self.own > SWAPPED * self.other


def dev_warning(
    training: Sequence[Pair],
    dev: Sequence[Pair],
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> str | None:
    """Return a warning with figures about an unlikely dev set, or None.

    Args:
        training: Pairs of the training text.
        dev: Pairs of the dev text.
        tokenizers: Tokenizers of the inputs and targets.
    """
    if len(training) < 2 or not dev:
        return None
    copied = _copies(dev)
    if copied > COPIED + _copies(training):
        return (
            f"dev: the source and the target of {copied:.0%} of the pairs are equal, "
            f"which holds for {_copies(training):.0%} of the training pairs: is one "
            "side a copy of the other?"
        )
    sides = side_costs(training, dev, tokenizers)
    figures = "; ".join(
        f"{name} {costs.own:.2f} bits per character, {costs.other:.2f} as text of the "
        f"other side, {costs.unseen:.2f} for training text"
        for name, costs in zip(("sources", "targets"), sides, strict=True)
    )
    suspicion = _suspicion(*sides)
    return None if suspicion is None else f"dev: {suspicion} ({figures})"


def _suspicion(source: SideCosts, target: SideCosts) -> str | None:
    """Return the most likely fault of a dev set, or None."""
    if source.is_other_side and target.is_other_side:
        return "the sides seem to be swapped"
    if source.is_other_side or target.is_other_side:
        name, other = ("sources", "targets")[:: 1 if source.is_other_side else -1]
        return f"the {name} look like the {other} of the training text"
    foreign = [
        name
        for name, costs in (("sources", source), ("targets", target))
        if costs.is_foreign
    ]
    if not foreign:
        return None
    return (
        f"the {' and '.join(foreign)} seem to be in another language, spelling or "
        "domain than the training text"
    )


def side_costs(
    training: Sequence[Pair],
    dev: Sequence[Pair],
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> tuple[SideCosts, SideCosts]:
    """Return the costs of the sources and of the targets; see `dev_warning`."""
    seen, unseen = (tuple(zip(*training[start::2], strict=True)) for start in (0, 1))
    texts = tuple(zip(*dev, strict=True))
    models = [SubwordModel(t, s) for t, s in zip(tokenizers, seen, strict=True)]
    costs = [m.bits_per_character(s) for m, s in zip(models, unseen, strict=True)]
    source, target = (
        SideCosts(
            own=models[side].bits_per_character(texts[side]),
            other=models[1 - side].bits_per_character(texts[side]),
            unseen=costs[side],
            other_unseen=costs[1 - side],
        )
        for side in (0, 1)
    )
    return source, target


def warn_of_unlikely_dev(data: PreparedData) -> None:
    """Log one warning if the dev split does not look like the training split.

    Args:
        data: Prepared data.

    Raises:
        UserError: If a file is missing or damaged.
    """
    if "dev" not in data.splits:
        return
    tokenizers = data.tokenizers()
    training, dev = (
        decoded_pairs(data.shards(split), tokenizers, count)
        for split, count in (("train", TRAINING_PAIRS), ("dev", DEV_PAIRS))
    )
    warning = dev_warning(training, dev, tokenizers)
    if warning is not None:
        logger.warning("%s", warning)


def decoded_pairs(
    shards: Shards, tokenizers: tuple[Tokenizer, Tokenizer], count: int
) -> list[Pair]:
    """Return the first pairs of some shards as text.

    Args:
        shards: Files of a split.
        tokenizers: Tokenizers of the inputs and targets.
        count: Largest number of pairs.

    Raises:
        UserError: If a file is missing or damaged.
    """
    inputs, targets = tokenizers
    examples = read_examples(shards).take(count).as_numpy_iterator()
    return [
        (inputs.decode(pair[INPUTS].tolist()), targets.decode(pair[TARGETS].tolist()))
        for pair in readable(examples)
    ]


def _copies(pairs: Sequence[Pair]) -> float:
    return sum(source == target for source, target in pairs) / len(pairs)
