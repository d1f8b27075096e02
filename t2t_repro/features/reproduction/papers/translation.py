"""Tables of translation systems: BLEU on newstest2014."""

from __future__ import annotations

from t2t_repro.features.reproduction.papers import facts
from t2t_repro.features.reproduction.tables import Row, Table

# Word pieces, English to French (Vaswani et al., section 5.1).
FRENCH_VOCAB_SIZE = 32_000


def _translator(
    name: str,
    label: str,
    ende: float | None,
    enfr: float | None,
    flops: tuple[float | None, float | None] | None = None,
    *,
    hparams_set: str | None = None,
    train_steps: int | None = None,
    train_hours: float | None = None,
    average_last: int = 0,
) -> Row:
    """Return a row with BLEU on newstest2014 and, in Table 2, the training cost.

    Args:
        name: Name of the row.
        label: Name of the system.
        ende: BLEU, English to German.
        enfr: BLEU, English to French.
        flops: Training cost of each of these.
        hparams_set: Set that builds the system.
        train_steps: Number of updates.
        train_hours: Training time on 8 P100 GPUs.
        average_last: Number of checkpoints averaged.
    """
    published = {"en-de": ende, "en-fr": enfr}
    if flops is not None:
        published |= {"FLOPs en-de": flops[0], "FLOPs en-fr": flops[1]}
    return Row(
        name,
        label,
        published,
        hparams_set=hparams_set,
        train_steps=train_steps,
        train_hours=train_hours,
        average_last=average_last,
    )


_FRENCH = ("`--run` trains English to German; for French, see the table enfr.",)

TABLE_2 = Table(
    "table2",
    "Translation, newstest2014 (Vaswani et al., Table 2)",
    ("en-de", "en-fr", "FLOPs en-de", "FLOPs en-fr"),
    [
        _translator("bytenet", "ByteNet", 23.75, None, (None, None)),
        _translator("deep_att_posunk", "Deep-Att + PosUnk", None, 39.2, (None, 1e20)),
        _translator("gnmt_rl", "GNMT + RL", 24.6, 39.92, (2.3e19, 1.4e20)),
        _translator("convs2s", "ConvS2S", 25.16, 40.46, (9.6e18, 1.5e20)),
        _translator("moe", "MoE", 26.03, 40.56, (2.0e19, 1.2e20)),
        _translator(
            "deep_att_posunk_ensemble",
            "Deep-Att + PosUnk Ensemble",
            None,
            40.4,
            (None, 8.0e20),
        ),
        _translator(
            "gnmt_rl_ensemble", "GNMT + RL Ensemble", 26.30, 41.16, (1.8e20, 1.1e21)
        ),
        _translator(
            "convs2s_ensemble", "ConvS2S Ensemble", 26.36, 41.29, (7.7e19, 1.2e21)
        ),
        _translator(
            "transformer_base_model",
            "Transformer (base model)",
            27.3,
            38.1,
            (3.3e18, 3.3e18),
            hparams_set="transformer_base",
            train_steps=facts.BASE_STEPS,
            train_hours=12,
            average_last=facts.BASE_AVERAGED,
        ),
        _translator(
            "transformer_big",
            "Transformer (big)",
            28.4,
            41.8,
            (2.3e19, 2.3e19),
            hparams_set="transformer_big",
            train_steps=facts.BIG_STEPS,
            train_hours=84,
            average_last=facts.BIG_AVERAGED,
        ),
    ],
    notes=(
        "Transformer (big), en-fr: 41.8 in this table and in the abstract, 41.0 in the "
        "text of section 6.1.",
        *_FRENCH,
    ),
    split="test",
)

WEIGHTED = Table(
    "weighted",
    "The Weighted Transformer, newstest2014 (Ahmed et al.)",
    ("en-de", "en-fr"),
    [
        _translator(
            "transformer_small",
            "Transformer (small)",
            27.3,
            38.1,
            hparams_set="transformer_base",
            train_steps=facts.BASE_STEPS,
            average_last=facts.BASE_AVERAGED,
        ),
        _translator(
            "weighted_transformer_small",
            "Weighted Transformer (small)",
            28.4,
            38.9,
            hparams_set="weighted_transformer_base",
            train_steps=facts.WEIGHTED_BASE_STEPS,
        ),
        _translator(
            "transformer_large",
            "Transformer (large)",
            28.4,
            41.0,
            hparams_set="transformer_big",
            train_steps=facts.BIG_STEPS,
            average_last=facts.BIG_AVERAGED,
        ),
        _translator(
            "weighted_transformer_large",
            "Weighted Transformer (large)",
            28.9,
            41.4,
            hparams_set="weighted_transformer_big",
            train_steps=facts.WEIGHTED_BIG_STEPS,
        ),
        _translator("bytenet", "ByteNet", 23.7, None),
        _translator("deep_att_posunk", "Deep-Att + PosUnk", None, 39.2),
        _translator("gnmt_rl", "GNMT + RL", 24.6, 39.9),
        _translator("convs2s", "ConvS2S", 25.2, 40.5),
        _translator("moe", "MoE", 26.0, 40.6),
    ],
    notes=_FRENCH,
    split="test",
)


def _french(
    name: str,
    label: str,
    bleu: float,
    hparams_set: str,
    train_steps: int,
    average_last: int = 0,
    train_hours: float | None = None,
) -> Row:
    """Return a row of the English-French table.

    Args:
        name: Name of the row.
        label: Name of the system.
        bleu: BLEU on newstest2014, English to French.
        hparams_set: Set that builds the system.
        train_steps: Number of updates.
        average_last: Number of checkpoints averaged.
        train_hours: Training time on 8 P100 GPUs.
    """
    return Row(
        name,
        label,
        {"BLEU": bleu},
        hparams_set=hparams_set,
        system_name=f"{hparams_set.removesuffix('_enfr')}_enfr",
        train_steps=train_steps,
        train_hours=train_hours,
        average_last=average_last,
        vocab_sizes=(FRENCH_VOCAB_SIZE, FRENCH_VOCAB_SIZE),
    )


# The column en-fr of the two tables above. German and French are separate runs.
ENFR = Table(
    "enfr",
    "English to French, newstest2014 (Vaswani et al., Table 2; Ahmed et al.)",
    ("BLEU",),
    [
        _french(
            "transformer_base_model",
            "Transformer (base model)",
            38.1,
            "transformer_base",
            facts.BASE_STEPS,
            facts.BASE_AVERAGED,
            train_hours=12,
        ),
        _french(
            "transformer_big",
            "Transformer (big)",
            41.8,
            "transformer_big_enfr",
            facts.BIG_STEPS,
            facts.BIG_AVERAGED,
            train_hours=84,
        ),
        _french(
            "weighted_transformer_small",
            "Weighted Transformer (small)",
            38.9,
            "weighted_transformer_base",
            facts.WEIGHTED_BASE_STEPS,
        ),
        _french(
            "weighted_transformer_large",
            "Weighted Transformer (large)",
            41.4,
            "weighted_transformer_big",
            facts.WEIGHTED_BIG_STEPS,
        ),
    ],
    notes=(
        "Transformer (big) has P_drop 0.1 here (section 6.1). The Weighted Transformer "
        "(large) keeps 0.3, because its paper gives no other value.",
        "Measured at the small scale: Multi30k, English to French, in another data_dir "
        "than the German.",
    ),
    split="test",
    target_language="fr",
)
