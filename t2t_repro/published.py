"""The numbers that the two papers print, and nothing that was measured here.

AIAYN is Vaswani et al. 2017 (arXiv 1706.03762) with the section on attention over
parameters that its LaTeX source holds; WT is Ahmed, Keskar and Socher 2017 (arXiv
1711.02132). BLEU is tokenised and compounds are split, as the papers have it; None
stands where a table is empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Variation:
    """A row of AIAYN's Table 3, or of its table on attention over parameters.

    Attributes:
        row: Name of the row; `transformer_base_<row>` is its hparams set.
        label: How the table shows it.
        changes: Hparams that differ from the base model's.
        perplexity: A subword's, on newstest2013.
        bleu: On newstest2013, English to German.
        parameters: In millions; None where the table leaves it out.
        train_steps: Updates.
        train_hours: On 8 P100 GPUs, where the table has it.
    """

    row: str
    label: str
    changes: Mapping[str, object]
    perplexity: float
    bleu: float
    parameters: int | None = None
    train_steps: int = 100_000
    train_hours: float | None = None


TABLE_3 = (
    Variation("", "base", {}, 4.92, 25.8, 65, train_hours=12),
    Variation("a_h1", "(A) h=1", {"num_heads": 1}, 5.29, 24.9),
    Variation("a_h4", "(A) h=4", {"num_heads": 4}, 5.00, 25.5),
    Variation("a_h16", "(A) h=16", {"num_heads": 16}, 4.91, 25.8),
    Variation("a_h32", "(A) h=32", {"num_heads": 32}, 5.01, 25.4),
    Variation("b_dk16", "(B) d_k=16", {"attention_key_channels": 128}, 5.16, 25.1, 58),
    Variation("b_dk32", "(B) d_k=32", {"attention_key_channels": 256}, 5.01, 25.4, 60),
    Variation("c_n2", "(C) N=2", {"num_hidden_layers": 2}, 6.11, 23.7, 36),
    Variation("c_n4", "(C) N=4", {"num_hidden_layers": 4}, 5.19, 25.3, 50),
    Variation("c_n8", "(C) N=8", {"num_hidden_layers": 8}, 4.88, 25.5, 80),
    Variation("c_d256", "(C) d_model=256", {"hidden_size": 256}, 5.75, 24.5, 28),
    Variation("c_d1024", "(C) d_model=1024", {"hidden_size": 1024}, 4.66, 26.0, 168),
    Variation("c_dff1024", "(C) d_ff=1024", {"filter_size": 1024}, 5.12, 25.4, 53),
    Variation("c_dff4096", "(C) d_ff=4096", {"filter_size": 4096}, 4.75, 26.2, 90),
    Variation(
        "d_dr0", "(D) P_drop=0", {"layer_prepostprocess_dropout": 0.0}, 5.77, 24.6
    ),
    Variation(
        "d_dr2", "(D) P_drop=0.2", {"layer_prepostprocess_dropout": 0.2}, 4.95, 25.5
    ),
    Variation("d_ls0", "(D) eps_ls=0", {"label_smoothing": 0.0}, 4.67, 25.3),
    Variation("d_ls2", "(D) eps_ls=0.2", {"label_smoothing": 0.2}, 5.47, 25.7),
    Variation("e_learned", "(E) learned positions", {"pos": "emb"}, 4.92, 25.7),
)
TABLE_3_BIG = Variation(
    "big",
    "big",
    {
        "hidden_size": 1024,
        "filter_size": 4096,
        "num_heads": 16,
        "layer_prepostprocess_dropout": 0.3,
    },
    4.33,
    26.4,
    213,
    train_steps=300_000,
    train_hours=84,
)

# The text says h_p = 8 for the second, the table 16: only 16 heads of 64 give the
# 2,097,152 parameters a sublayer that the text states.
ATTENTION_OVER_PARAMETERS = (
    Variation(
        "aop1",
        "AOP1: h_p=8, n_p=1536",
        {
            "ffn_layer": "parameter_attention",
            "filter_size": 1536,
            "parameter_attention_heads": 8,
            "parameter_attention_key_channels": 512,
            "parameter_attention_value_channels": 512,
        },
        4.92,
        25.5,
        65,
        train_hours=16,
    ),
    Variation(
        "aop2",
        "AOP2: h_p=16, n_p=512",
        {
            "ffn_layer": "parameter_attention",
            "filter_size": 512,
            "parameter_attention_heads": 16,
            "parameter_attention_key_channels": 1024,
            "parameter_attention_value_channels": 1024,
        },
        4.86,
        25.9,
        65,
        train_hours=16,
    ),
)


@dataclass(frozen=True)
class TranslationSystem:
    """A row of AIAYN's Table 2 or of WT's table of results: newstest2014.

    Attributes:
        system: Its name.
        ende: BLEU, English to German.
        enfr: BLEU, English to French.
        ende_flops: Training cost, English to German.
        enfr_flops: The same to French.
        hparams_set: The set that builds it here; None where it is not ours.
        train_steps: Updates; None where it is not ours.
        train_hours: On `NUM_GPUS` P100 GPUs; None where it is not given.
        average_last: Checkpoints averaged; 0 = none.
    """

    system: str
    ende: float | None = None
    enfr: float | None = None
    ende_flops: float | None = None
    enfr_flops: float | None = None
    hparams_set: str | None = None
    train_steps: int | None = None
    train_hours: float | None = None
    average_last: int = 0


# AIAYN section 5.1: shared subwords, English to German.
VOCAB_SIZE = 37_000
# AIAYN section 6.1: checkpoints averaged for the base and the big model.
AVERAGED = {"transformer_base": 5, "transformer_big": 20}
# AIAYN section 6.1, footnote: what a GPU was taken to sustain in single precision.
SUSTAINED_FLOPS = {"K80": 2.8e12, "K40": 3.7e12, "M40": 6.0e12, "P100": 9.5e12}
NUM_GPUS = 8

TABLE_2 = (
    TranslationSystem("ByteNet", 23.75),
    TranslationSystem("Deep-Att + PosUnk", None, 39.2, None, 1.0e20),
    TranslationSystem("GNMT + RL", 24.6, 39.92, 2.3e19, 1.4e20),
    TranslationSystem("ConvS2S", 25.16, 40.46, 9.6e18, 1.5e20),
    TranslationSystem("MoE", 26.03, 40.56, 2.0e19, 1.2e20),
    TranslationSystem("Deep-Att + PosUnk Ensemble", None, 40.4, None, 8.0e20),
    TranslationSystem("GNMT + RL Ensemble", 26.30, 41.16, 1.8e20, 1.1e21),
    TranslationSystem("ConvS2S Ensemble", 26.36, 41.29, 7.7e19, 1.2e21),
    TranslationSystem(
        "Transformer (base model)",
        27.3,
        38.1,
        3.3e18,
        3.3e18,
        "transformer_base",
        train_steps=100_000,
        train_hours=12,
        average_last=AVERAGED["transformer_base"],
    ),
    # The text of section 6.1 has 41.0 where the table has 41.8.
    TranslationSystem(
        "Transformer (big)",
        28.4,
        41.8,
        2.3e19,
        2.3e19,
        "transformer_big",
        train_steps=300_000,
        train_hours=84,
        average_last=AVERAGED["transformer_big"],
    ),
)

# WT, its table of results.
WEIGHTED_RESULTS = (
    TranslationSystem(
        "Transformer (small)",
        27.3,
        38.1,
        hparams_set="transformer_base",
        train_steps=100_000,
        average_last=AVERAGED["transformer_base"],
    ),
    TranslationSystem(
        "Weighted Transformer (small)",
        28.4,
        38.9,
        hparams_set="weighted_transformer_base",
        train_steps=60_000,
    ),
    TranslationSystem(
        "Transformer (large)",
        28.4,
        41.0,
        hparams_set="transformer_big",
        train_steps=300_000,
        average_last=AVERAGED["transformer_big"],
    ),
    TranslationSystem(
        "Weighted Transformer (large)",
        28.9,
        41.4,
        hparams_set="weighted_transformer_big",
        train_steps=250_000,
    ),
    TranslationSystem("ByteNet", 23.7),
    TranslationSystem("Deep-Att + PosUnk", None, 39.2),
    TranslationSystem("GNMT + RL", 24.6, 39.9),
    TranslationSystem("ConvS2S", 25.2, 40.5),
    TranslationSystem("MoE", 26.0, 40.6),
)


@dataclass(frozen=True)
class Sensitivity:
    """A row of WT's sensitivity analysis: newstest2013, English to German.

    Attributes:
        config: Its letter in the table, or empty.
        changes: Hparams of the plain model that differ from the base model's.
        transformer: BLEU of the plain Transformer.
        weighted: BLEU of the Weighted Transformer.
        parameters: In millions.
        weighted_dropout: The Weighted Transformer's P_drop.
        steps: Updates of the two.
    """

    config: str
    changes: Mapping[str, object]
    transformer: float
    weighted: float
    parameters: int
    weighted_dropout: float = 0.1
    steps: tuple[int, int] = (100_000, 60_000)


SENSITIVITY = (
    Sensitivity("C", {"num_hidden_layers": 2}, 23.7, 24.8, 36),
    Sensitivity("", {"num_hidden_layers": 4}, 25.3, 26.2, 50),
    Sensitivity("A", {}, 25.8, 26.5, 65),
    Sensitivity("", {"num_hidden_layers": 8}, 25.5, 25.6, 80, weighted_dropout=0.3),
    Sensitivity(
        "B",
        TABLE_3_BIG.changes,
        26.4,
        27.2,
        213,
        weighted_dropout=0.3,
        steps=(300_000, 250_000),
    ),
)

# WT, configuration (C): BLEU with kappa and alpha replaced at test time.
RANDOMISATION = {"learned": 24.8, "random": 21.1, "uniform": 23.4}


@dataclass(frozen=True)
class Parser:
    """A row of AIAYN's Table 4.

    Attributes:
        system: Its name.
        training: What it learnt from.
        f1: Labelled bracketing F1 on section 23 of the WSJ.
        hparams_set: The set that builds it here; None where it is not ours.
        vocab_size: Source subwords, section 6.3; None where it is not ours.
    """

    system: str
    training: str
    f1: float
    hparams_set: str | None = None
    vocab_size: int | None = None


_WSJ = "WSJ only, discriminative"
_SEMI = "semi-supervised"
TABLE_4 = (
    Parser("Vinyals & Kaiser et al. (2014)", _WSJ, 88.3),
    Parser("Petrov et al. (2006)", _WSJ, 90.4),
    Parser("Zhu et al. (2013)", _WSJ, 90.4),
    Parser("Dyer et al. (2016)", _WSJ, 91.7),
    Parser("Transformer (4 layers)", _WSJ, 91.3, "transformer_parsing_wsj", 16_000),
    Parser("Zhu et al. (2013)", _SEMI, 91.3),
    Parser("Huang & Harper (2009)", _SEMI, 91.3),
    Parser("McClosky et al. (2006)", _SEMI, 92.1),
    Parser("Vinyals & Kaiser et al. (2014)", _SEMI, 92.1),
    Parser("Transformer (4 layers)", _SEMI, 92.7, "transformer_parsing_semi", 32_000),
    Parser("Luong et al. (2015)", "multi-task", 93.0),
    Parser("Dyer et al. (2016)", "generative", 93.3),
)


@dataclass(frozen=True)
class LayerType:
    """Orders of a kind of layer: a row of AIAYN's Table 1, or from its section 4.

    Attributes:
        layer: Kind of layer.
        complexity: Operations a layer; n positions of width d, kernel k, window r.
        sequential: Operations that must wait for each other.
        path: Longest path between two positions.
        derived: Names of the orders above that the paper does not print.
    """

    layer: str
    complexity: str
    sequential: str
    path: str
    derived: tuple[str, ...] = ()


TABLE_1 = (
    LayerType("Self-Attention", "n^2 d", "1", "1"),
    LayerType("Recurrent", "n d^2", "n", "n"),
    LayerType("Convolutional", "k n d^2", "1", "log_k(n)"),
    LayerType("Self-Attention (restricted)", "r n d", "1", "n/r"),
)
# Section 4: a stack of n/k layers whose kernels have no gaps connects all positions,
# where Table 1 has dilated ones.
CONTIGUOUS = LayerType("Convolutional", "k n d^2", "1", "n/k")
# Section 4 prints the complexity alone. The rest is that of a kernel without gaps: a
# separable convolution connects the same positions, by two operations instead of one.
SEPARABLE = LayerType(
    "Convolutional", "k n d + n d^2", "1", "n/k", derived=("sequential", "path")
)
