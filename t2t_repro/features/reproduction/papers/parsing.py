"""The table of parsers: labelled bracketing F1."""

from __future__ import annotations

from t2t_repro.features.reproduction.tables import Row, Table

# The brackets of the Penn Treebank's 26 constituents, XX, and three special symbols.
TREE_SYMBOLS = 2 * 26 + 1 + 3

_WSJ = "WSJ only, discriminative"
_SEMI = "semi-supervised"


def _parser(
    name: str,
    label: str,
    training: str,
    f1: float,
    hparams_set: str | None = None,
    source_vocab_size: int = 0,
) -> Row:
    """Return one row of Table 4.

    Args:
        name: Name of the row.
        label: Name of the system.
        training: Training data.
        f1: Labelled bracketing F1 on section 23 of the WSJ.
        hparams_set: Set that builds the system.
        source_vocab_size: Number of source subwords (section 6.3).
    """
    return Row(
        name,
        label,
        {"training": training, "F1": f1},
        hparams_set=hparams_set,
        vocab_sizes=(source_vocab_size, TREE_SYMBOLS),
    )


TABLE_4 = Table(
    "table4",
    "English constituency parsing, WSJ section 23 (Vaswani et al., Table 4)",
    ("training", "F1"),
    [
        _parser(
            "vinyals_kaiser_et_al_2014_wsj_only",
            "Vinyals & Kaiser et al. (2014)",
            _WSJ,
            88.3,
        ),
        _parser("petrov_et_al_2006_wsj_only", "Petrov et al. (2006)", _WSJ, 90.4),
        _parser("zhu_et_al_2013_wsj_only", "Zhu et al. (2013)", _WSJ, 90.4),
        _parser("dyer_et_al_2016_wsj_only", "Dyer et al. (2016)", _WSJ, 91.7),
        _parser(
            "transformer_4_layers_wsj_only",
            "Transformer (4 layers)",
            _WSJ,
            91.3,
            "transformer_parsing_wsj",
            16_000,
        ),
        _parser("zhu_et_al_2013_semi_supervised", "Zhu et al. (2013)", _SEMI, 91.3),
        _parser(
            "huang_harper_2009_semi_supervised", "Huang & Harper (2009)", _SEMI, 91.3
        ),
        _parser(
            "mcclosky_et_al_2006_semi_supervised",
            "McClosky et al. (2006)",
            _SEMI,
            92.1,
        ),
        _parser(
            "vinyals_kaiser_et_al_2014_semi_supervised",
            "Vinyals & Kaiser et al. (2014)",
            _SEMI,
            92.1,
        ),
        _parser(
            "transformer_4_layers_semi_supervised",
            "Transformer (4 layers)",
            _SEMI,
            92.7,
            "transformer_parsing_semi",
            32_000,
        ),
        _parser(
            "luong_et_al_2015_multi_task", "Luong et al. (2015)", "multi-task", 93.0
        ),
        _parser("dyer_et_al_2016_generative", "Dyer et al. (2016)", "generative", 93.3),
    ],
    notes=(
        f"params at full size: with {TREE_SYMBOLS} target symbols: the brackets of the "
        "Penn Treebank's 26 constituents, XX, and three special ones.",
        "Measured at the small scale: transformer_parsing_small, leaves with initials, "
        "dev split of the CRAFT treebank.",
        "The paper's 17 million silver trees come from other parsers and are not "
        "available: those of the small scale are our parser's own, written by "
        "docs/results/silver.py.",
    ),
    task="parsing",
)
