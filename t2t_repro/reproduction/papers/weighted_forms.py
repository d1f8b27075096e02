"""Readings of the Weighted Transformer where the text of Ahmed et al. is not specific.

`hparams.weighted` lists what the text says about each setting.
"""

from __future__ import annotations

from t2t_repro.reproduction.papers import facts
from t2t_repro.reproduction.papers.text_systems import NOT_OF_THE_PAPERS
from t2t_repro.reproduction.tables import Row, Table

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
        _form("around", "one residual connection around both sublayers", ""),
        _form(
            "per_branch",
            "both residual connections, in each branch",
            "branch_residual=per_branch",
        ),
        _form(
            "shared",
            "both residual connections, for the sums of branches",
            "branch_residual=shared",
        ),
        _form(
            "inside",
            "one more residual connection inside each branch",
            "branch_residual=inside",
        ),
        _form(
            "near_uniform",
            "kappa and alpha begin near 1/M",
            "branch_weights_init=near_uniform",
        ),
        _form(
            "fixed",
            "kappa and alpha are 1/M throughout",
            "branch_weights_init=uniform,branch_learning_rate_constant=0",
        ),
        _form("unit_gain", "kappa and alpha times M", "branch_gain=unit"),
        _form(
            "initial_gain",
            "initial output matrices times M",
            "branch_gain=initial",
        ),
        _form(
            "decoder_self",
            "the decoder's self-attention is branched",
            "branched_in_decoder=self",
        ),
        _form(
            "one_network",
            "one feed-forward network of full width",
            "branched_attention=shared",
        ),
        _form(
            "shared_unit",
            "shared, near_uniform and unit_gain together",
            "branch_residual=shared,branch_weights_init=near_uniform,branch_gain=unit",
        ),
        _form(
            "shared_initial",
            "shared, near_uniform and initial_gain together",
            "branch_residual=shared,branch_weights_init=near_uniform,branch_gain=initial",
        ),
    ],
    notes=(
        NOT_OF_THE_PAPERS,
        "M: number of branches. At the long scale, the rate of kappa and alpha is the "
        "schedule of section 4.1 times learning_rate_constant.",
        "transformer is table3/base, and around is sensitivity/base.",
    ),
)
