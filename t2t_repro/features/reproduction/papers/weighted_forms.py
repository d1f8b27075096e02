"""Readings of the Weighted Transformer where the text of Ahmed et al. is not specific.

`hparams.weighted` lists what the text says about each setting.
"""

from __future__ import annotations

from t2t_repro.features.reproduction.papers import facts
from t2t_repro.features.reproduction.papers.text_systems import NOT_OF_THE_PAPERS
from t2t_repro.features.reproduction.tables import Row, Table

_BRANCHED = "weighted_transformer_base"


def _form(
    name: str,
    label: str,
    changes: str,
    base: str = _BRANCHED,
    train_steps: int = facts.WEIGHTED_BASE_STEPS,
) -> Row:
    """Return a row that changes a set of the base size.

    Args:
        name: Name of the row.
        label: What is different.
        changes: Changes to the set, in the form of `--hparams`.
        base: Name of the set.
        train_steps: Number of updates in the paper.
    """
    settings = [change.partition("=")[0] for change in changes.split(",")]
    return Row(
        name,
        label,
        {"setting": settings[0] if len(settings) == 1 else f"{len(settings)} settings"},
        hparams_set=base,
        hparams=changes,
        system_name=f"{base}_{name}" if changes else "",
        train_steps=train_steps,
    )


# One residual connection around attention and network, and the equations as printed.
_AROUND = "branch_residual=around,branch_gain=none,branch_weights_init=random"

FORMS = Table(
    "forms",
    "Readings of the Weighted Transformer, beside the Transformer",
    ("setting",),
    [
        _form("transformer", "Transformer", "", "transformer_base", facts.BASE_STEPS),
        _form(
            "transformer_attention_dropout",
            "Transformer, dropout of attention weights 0.1",
            "attention_dropout=0.1",
            "transformer_base",
            facts.BASE_STEPS,
        ),
        _form("weighted", "the set weighted_transformer_base", ""),
        _form(
            "random_start",
            "kappa and alpha start at random",
            "branch_weights_init=random",
        ),
        _form(
            "initial_gain",
            "no gain; initial output matrices times M",
            "branch_gain=initial",
        ),
        _form(
            "shared",
            "no gain, random start",
            "branch_gain=none,branch_weights_init=random",
        ),
        _form(
            "per_branch",
            "residuals in each branch, no gain, random start",
            "branch_residual=per_branch,branch_gain=none,branch_weights_init=random",
        ),
        _form(
            "self_attention",
            "the decoder's self-attention is branched",
            "branched_in_decoder=self",
        ),
        _form(
            "around",
            "one residual around both, no gain, random start",
            _AROUND,
        ),
        _form(
            "around_near_uniform",
            "around; kappa and alpha start near 1/M",
            "branch_residual=around,branch_gain=none",
        ),
        _form(
            "around_fixed",
            "around; kappa and alpha are 1/M throughout",
            "branch_residual=around,branch_gain=none,branch_weights_init=uniform,"
            "branch_learning_rate_constant=0",
        ),
        _form(
            "around_unit_gain",
            "around; kappa and alpha times M",
            "branch_residual=around,branch_weights_init=random",
        ),
        _form(
            "around_initial_gain",
            "around; initial output matrices times M",
            "branch_residual=around,branch_gain=initial,branch_weights_init=random",
        ),
        _form(
            "around_self_attention",
            "around; the decoder's self-attention is branched",
            f"{_AROUND},branched_in_decoder=self",
        ),
        _form(
            "around_one_network",
            "around; one feed-forward network of full width",
            f"{_AROUND},branched_attention=shared",
        ),
        _form(
            "inside",
            "around; a residual and a normalization in each branch",
            "branch_residual=inside,branch_gain=none,branch_weights_init=random",
        ),
    ],
    notes=(
        NOT_OF_THE_PAPERS,
        "M: number of branches. At the long scale, the rate of kappa and alpha is the "
        "schedule of section 4.1 times learning_rate_constant.",
        "transformer is table3/base, and weighted is sensitivity/base.",
    ),
)
