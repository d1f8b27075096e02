"""The Weighted Transformer (Ahmed, Keskar and Socher 2017, arXiv 1711.02132).

The paper's "small" and "large" are the base and big models with branched attention.
Its text leaves several points open, and parts of it contradict others. The sets have
the reading that preserves the Transformer; `branch_residual=around` follows equations
(6) and (7) to the letter. A layer, with u the sum of attention and x, y the output, and
M branches::

    u = LN1(x + sum_i (M kappa_i) head_i W_i^O)
    y = LN2(u + sum_i (M alpha_i) FFN_i(u))

Differs from equation (7): FFN_i sees the stream u, which all branches share, instead of
headbar_i. So kappa and alpha only scale rows of W^O and W_2: a Transformer can compute
whatever this model can, and only the training differs. It begins at effective weights
of about 1, because of the gain M and the start near 1 / M.

* `branch_residual="shared"`: "layer normalization and residual connections [...] are
  retained", and "without these additional trainable weights, the proposed mechanism is
  identical to the multi-head attention mechanism in the Transformer" (section 3). Both
  hold here, if "mechanism" means attention and network together. The sets add 192
  weights at the base size, the number in the text (and 384 at the big one, beside which
  the text names it). "per_branch" adds as many, but is not the Transformer without the
  weights; "around" and "inside" do not retain the normalizations.
* `branch_gain="unit"`. Differs from the text, which has no factor M. Without it, kappa
  and alpha of about 1 / M make every sublayer smaller by M, and the Transformer, which
  "weighs all heads equally", is not on the simplex. With it, equal weights are the
  Transformer, and training moves away from there. The readings without the gain have a
  higher dev nll (docs/results/tables.md).
* `branch_weights_init="near_uniform"`: "randomly" gives no distribution, and this one
  begins near the Transformer. Uniform numbers divided by their sum (`random`) reach
  scores that cannot be told from these (docs/results/tables.md).
* `branch_learning_rate_constant=1`: the schedule of section 4.1. At another scale, the
  value of `learning_rate_constant` keeps the ratio of both learning rates.
* `branched_in_decoder="memory"`: 192 weights are those of one attention per decoder
  layer. "Self-attention branches" and "masked in the decoder layers" support "self",
  but the network comes after the other attention.
* `branched_attention="split"`: divides the Transformer's network, so it costs nothing.
  "Identical to Equation (4)" supports "shared", one network for all branches; applied
  to one input, its branches would be equal.

`t2t reproduce forms` has these readings as rows, and docs/results/tables.md their
scores.
`layers.weighted` has the equations.
"""

from t2t_repro.registry import register_hparams
from t2t_repro.settings.hparams import HParams

from .transformer_sets import transformer_base, transformer_big

FROZEN_AT_THE_END = 10_000  # steps, section 4.1


def _weighted(plain: HParams, train_steps: int) -> HParams:
    """Return the Weighted Transformer of a Transformer's set.

    Args:
        plain: The set of the Transformer.
        train_steps: Number of updates in the paper.
    """
    return plain.replace(
        attention_dropout=0.1,
        branched_attention="split",
        branch_residual="shared",
        branch_gain="unit",
        branch_weights_init="near_uniform",
        branch_frozen_after_steps=train_steps - FROZEN_AT_THE_END,
    )


@register_hparams
def weighted_transformer_base() -> HParams:
    """The Weighted Transformer (small): the base model with 8 branches.

    Source: Ahmed et al. 2017, sections 3 and 4.1: attention and residual dropout 0.1.
        kappa and alpha have their own schedule with 400 warm-up steps, and are frozen
        for the last 10,000 of 60,000 steps.
    Published: newstest2014 en-de BLEU 28.4, en-fr 38.9 (no averaging; 60,000 steps).
    Measured: at a small scale, `t2t reproduce forms` (docs/results.md).
    Command: t2t train --problem translate_ende_wmt14 --hparams_set
        weighted_transformer_base --data_dir DATA --output_dir OUT --train_steps 60000
        --average_last 0
    """
    return _weighted(transformer_base(), 60_000)


@register_hparams
def weighted_transformer_big() -> HParams:
    """The Weighted Transformer (large): the big model with 16 branches.

    Source: Ahmed et al. 2017, sections 3 and 4.1: residual dropout 0.3, 250,000 steps.
    Published: newstest2014 en-de BLEU 28.9, en-fr 41.4 (no averaging; 250,000 steps).
    Measured: `t2t reproduce weighted`.
    Command: t2t train --problem translate_ende_wmt14 --hparams_set
        weighted_transformer_big --data_dir DATA --output_dir OUT --train_steps 250000
        --average_last 0
    """
    return _weighted(transformer_big(), 250_000)


@register_hparams
def weighted_transformer_n2() -> HParams:
    """Sensitivity analysis, configuration (C): 2 layers.

    Source: Ahmed et al. 2017, table of the sensitivity analysis.
    Published: newstest2013 en-de BLEU 24.8, plain Transformer 23.7.
    Measured: `t2t reproduce sensitivity`.
    Command: t2t train --problem translate_ende_wmt14 --hparams_set
        weighted_transformer_n2 --data_dir DATA --output_dir OUT --train_steps 60000
        --average_last 0
    """
    return weighted_transformer_base().replace(num_hidden_layers=2)


@register_hparams
def weighted_transformer_n4() -> HParams:
    """Sensitivity analysis: 4 layers.

    Source: Ahmed et al. 2017, table of the sensitivity analysis.
    Published: newstest2013 en-de BLEU 26.2, plain Transformer 25.3.
    Measured: `t2t reproduce sensitivity`.
    Command: t2t train --problem translate_ende_wmt14 --hparams_set
        weighted_transformer_n4 --data_dir DATA --output_dir OUT --train_steps 60000
        --average_last 0
    """
    return weighted_transformer_base().replace(num_hidden_layers=4)


@register_hparams
def weighted_transformer_n8() -> HParams:
    """Sensitivity analysis: 8 layers, residual dropout 0.3.

    Source: Ahmed et al. 2017, table of the sensitivity analysis. Its other rows of the
        base size do not have this dropout, which may be a misprint.
    Published: newstest2013 en-de BLEU 25.6, plain Transformer 25.5.
    Measured: `t2t reproduce sensitivity`.
    Command: t2t train --problem translate_ende_wmt14 --hparams_set
        weighted_transformer_n8 --data_dir DATA --output_dir OUT --train_steps 60000
        --average_last 0
    """
    return weighted_transformer_base().replace(
        num_hidden_layers=8, layer_prepostprocess_dropout=0.3
    )
