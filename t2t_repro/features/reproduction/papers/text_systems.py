"""Systems that the papers describe in their text, without scores.

The tables are this toolkit's own: they compare what the text only mentions.
"""

from __future__ import annotations

from t2t_repro.features.reproduction.papers import facts
from t2t_repro.features.reproduction.tables import Row, Table

BASE_HEADS = 8
NOT_OF_THE_PAPERS = "This toolkit's comparison: no paper prints these rows."
_SOURCE = "source: the text that describes the system."

# Label -> value of attention_compatibility.
_COMPATIBILITIES = {
    "scaled": "scaled_dot_product",
    "unscaled": "dot_product",
    "additive": "additive",
}
# Depths d_k at the paper's size -> set that has it already.
# Additive attention holds a vector of d_k values per query and key. At the small scale,
# d_k=1024 takes 9 GB and about 3 s per update on one core.
_DEPTHS = {16: "transformer_base_b_dk16", 64: "transformer_base", 256: "", 1024: ""}
_NEIGHBOURHOODS = (15, 31)


def _compatibility(kind: str, depth: int) -> Row:
    """Return a row with a compatibility function and a depth d_k of each head."""
    own_set = _DEPTHS[depth]
    changes = []
    if kind != "scaled":
        changes.append(f"attention_compatibility={_COMPATIBILITIES[kind]}")
    if not own_set:
        changes.append(f"attention_key_channels={BASE_HEADS * depth}")
    name = f"{kind}_dk{depth}"
    return Row(
        name,
        f"{kind}, d_k={depth}",
        {
            "d_k": depth,
            "r": None,
            "source": "Vaswani et al., section 3.2.1",
        },
        hparams_set=own_set or "transformer_base",
        hparams=",".join(changes),
        system_name=f"transformer_base_{name}" if changes else "",
        train_steps=facts.BASE_STEPS,
    )


def _restricted(neighbourhood: int) -> Row:
    """Return a row whose self-attention sees r positions."""
    name = f"restricted_r{neighbourhood}"
    return Row(
        name,
        f"restricted self-attention, r={neighbourhood}",
        {
            "d_k": 64,
            "r": neighbourhood,
            "source": "Vaswani et al., section 4",
        },
        hparams_set="transformer_base",
        hparams=(
            f"self_attention_type=restricted,attention_neighbourhood={neighbourhood}"
        ),
        system_name=f"transformer_base_{name}",
        train_steps=facts.BASE_STEPS,
    )


ATTENTION = Table(
    "attention",
    "Attention functions and neighbourhoods that the text of Vaswani et al. describes",
    ("d_k", "r", "source"),
    [
        *(_compatibility(kind, d) for d in _DEPTHS for kind in _COMPATIBILITIES),
        *map(_restricted, _NEIGHBOURHOODS),
    ],
    notes=(
        NOT_OF_THE_PAPERS,
        _SOURCE,
        "Section 3.2.1: for small d_k, additive and unscaled attention perform "
        "similarly; for larger d_k, additive attention is better.",
        "d_k: at the paper's widths; 4, 16, 64 and 256 at the small and long scale. r "
        "is the same at every scale.",
        "scaled_dk16 is table3/b_dk16, and scaled_dk64 is table3/base.",
    ),
)


def _branches(name: str, label: str, source: str, finding: str, hparams: str) -> Row:
    """Return a row with another normalization or summation of branches.

    Args:
        name: Name of the row.
        label: Name of the system.
        source: Section that describes it.
        finding: What the paper says about it, if anything.
        hparams: Changes to the Weighted Transformer (small).
    """
    return Row(
        name,
        label,
        {"text says": finding, "source": f"Ahmed et al., section {source}"},
        hparams_set="weighted_transformer_base",
        hparams=hparams,
        system_name=f"weighted_transformer_base_{name}" if hparams else "",
        train_steps=facts.WEIGHTED_BASE_STEPS,
    )


_GATING_IS_WORSE = "worse by a large margin"

BRANCHES = Table(
    "branches",
    "Other ways to combine branches that the text of Ahmed et al. describes",
    ("text says", "source"),
    [
        _branches("simplex", "projection on the simplex (the paper's)", "3", "", ""),
        _branches(
            "softmax",
            "softmax of kappa and alpha",
            "3",
            "worse",
            "branch_normalization=softmax",
        ),
        *(
            _branches(
                f"top{k}",
                f"gating, the top {k} of 8",
                "4.5",
                _GATING_IS_WORSE,
                f"branch_top_k={k}",
            )
            for k in (2, 4)
        ),
    ],
    notes=(
        NOT_OF_THE_PAPERS,
        _SOURCE,
        "The text gives no k: 2 and 4 are our choice. simplex is sensitivity/base.",
    ),
)
