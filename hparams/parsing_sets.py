"""Sets for constituency parsing (section 6.3 of the paper)."""

from t2t_repro.registry import register_hparams
from t2t_repro.settings.hparams import HParams

from .transformer_sets import transformer_base


@register_hparams
def transformer_parsing_wsj() -> HParams:
    """The paper's parser: 4 layers of width 1024, two vocabularies.

    Source: Vaswani et al. 2017, section 6.3: 4 layers, d_model 1024; "only a small
        number of experiments to select the dropout, both attention and residual,
        learning rates and beam size on the Section 22 development set". Dropout,
        learning rate, warm-up and lengths are those of tensor2tensor's
        transformer_parsing_base (releases 1.0.7 of 24 June to 1.2.9 of November 2017),
        which has 6 layers instead of the paper's 4, 4,096 tokens per batch and
        concatenated sines and cosines; batch size and positions are those of
        transformer_base. Its learning rate of 0.05 is half of equation (3), whose
        factor 1 was 0.1 there. Until release 1.0.3 of 20 June, the set was called
        transformer_parsing_base_dr6 and had ten times that rate. Releases 1.0.4 and
        1.0.5 (21 and 22 June) have dropout 0.1 after the sublayers.
    Published: F1 91.3 on section 23 of the WSJ, trained only on the WSJ (about 40,000
        sentences, 16,000 subwords; beam 21, alpha 0.3, length + 300).
    Measured: not yet measured.
    Command: t2t train --problem parsing_ptb --hparams_set transformer_parsing_wsj
        --train_trees TRAIN --dev_trees DEV --vocab_size 16000
        --data_dir DATA --output_dir OUT
    """
    return transformer_base().replace(
        hidden_size=1024,
        num_hidden_layers=4,
        attention_dropout=0.2,
        layer_prepostprocess_dropout=0.2,
        shared_embedding_and_softmax_weights=False,
        max_length=512,
        learning_rate_constant=0.5,
        learning_rate_warmup_steps=16_000,
    )


@register_hparams
def transformer_parsing_semi() -> HParams:
    """The paper's semi-supervised parser: transformer_parsing_wsj with less dropout.

    Source: Vaswani et al. 2017, section 6.3: 32,000 subwords and about 17 million
        sentences. Dropout 0.1 is our choice, because the text is not repeated during
        training; the paper does not specify it. tensor2tensor's transformer_parsing_big
        of 2017 also has 0.1 after the sublayers, and the same learning rate.
    Published: F1 92.7 on section 23 of the WSJ (beam 21, alpha 0.3, length + 300).
    Measured: not yet measured.
    Command: t2t train --problem parsing_ptb --hparams_set transformer_parsing_semi
        --train_trees TRAIN --dev_trees DEV --vocab_size 32000
        --data_dir DATA --output_dir OUT
    """
    return transformer_parsing_wsj().replace(
        attention_dropout=0.1, layer_prepostprocess_dropout=0.1
    )


@register_hparams
def transformer_parsing_small() -> HParams:
    """A parser for 25,000 training trees and two CPU cores: 3 layers, width 256.

    Source: this project. Pre-norm allows a learning rate that peaks at 1.8e-3 after
        1,200 steps; it falls to zero in the last 10,500. Small batches allow many
        updates per hour. Rows are packed, so there is one shape to compile. With
        dropout of attention weights, activations and symbols, too, the dev nll falls
        until step 20,000. Positions in words and in open brackets help to find the
        next word and the bracket to close (docs/parsing.md).
    Published: none.
    Measured: parsing_ptb_initials on the CRAFT treebank, 23,000 steps: dev F1
        85.01 on sentences of up to 40 words and 82.25 on all with
        constrain=tree,word_cost=0.7,mbr_scale=1,mbr_consensus=true; 84.57 and
        81.65 without. Another seed has 84.94 and 81.76, and 84.45 and 81.25
        (docs/results.md).
    Command: t2t train --problem parsing_ptb_initials
        --hparams_set transformer_parsing_small --train_trees TRAIN --dev_trees DEV
        --vocab_size 8000 --data_dir DATA --output_dir OUT --train_steps 23000
    """
    return transformer_base().replace(
        hidden_size=256,
        filter_size=512,
        num_heads=4,
        num_hidden_layers=3,
        shared_embedding_and_softmax_weights=False,
        layer_preprocess_sequence="n",
        layer_postprocess_sequence="da",
        attention_dropout=0.1,
        relu_dropout=0.1,
        symbol_dropout=0.05,
        layer_prepostprocess_dropout=0.2,
        word_positions=True,
        depth_positions=True,
        batch_size=2048,
        packed_length=192,
        packed_source_length=112,
        max_length=192,
        min_length_bucket=20,
        length_bucket_step=1.5,
        learning_rate_schedule=(
            "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size*linear_decay"
        ),
        learning_rate_warmup_steps=1200,
        learning_rate_decay_steps=10_500,
    )
