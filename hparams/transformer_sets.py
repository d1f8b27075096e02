"""Sets for the encoder-decoder Transformer.

`transformer_base` and `transformer_big` are the paper's models (Vaswani et al. 2017).
Sets whose names end in `_v3` are tensor2tensor's last. From version 1.0 on, a
registered set never changes its meaning.

Every docstring is a card. Source: the origin of the values. Published: a score that
others reported. Measured: our score. Command: a command that reproduces it.

The learning rate at step s is constant * min(1, s / w) * max(s, w)^-0.5 *
hidden_size^-0.5 with w warm-up steps. If constant is 1, this is equation (3) of the
paper. Its peak, at s = w, is constant * (w * hidden_size)^-0.5.
"""

from t2t_repro.registry import register_hparams
from t2t_repro.settings.hparams import HParams


@register_hparams
def transformer_base() -> HParams:
    """The paper's base model: 6 layers, width 512, 63M parameters at V 37,000.

    Source: Vaswani et al. 2017, sections 5.1 to 5.4 and table 3, row "base". The batch
        is section 5.1's 25,000 source and 25,000 target tokens over the 8 GPUs of
        section 5.2: 25,000 / 8 = 3,125 tokens per replica. On another number of
        replicas, update_tokens=25000 keeps the global batch. The paper does not specify
        lengths and buckets; these are tensor2tensor's.
    Published: newstest2014 en-de BLEU 27.3, en-fr 38.1 (tokenized, compounds split,
        average of the last 5 checkpoints, beam 4, alpha 0.6; 100,000 steps).
    Measured: not yet measured.
    Command: t2t train --problem translate_ende_wmt14 --hparams_set transformer_base
        --data_dir DATA --output_dir OUT --train_steps 100000
    """
    return HParams(
        hidden_size=512,
        filter_size=2048,
        num_heads=8,
        num_hidden_layers=6,
        num_encoder_layers=0,
        num_decoder_layers=0,
        attention_key_channels=0,
        attention_value_channels=0,
        attention_compatibility="scaled_dot_product",
        self_attention_type="dot_product",
        attention_neighbourhood=0,
        ffn_layer="dense_relu_dense",
        parameter_attention_heads=0,
        parameter_attention_key_channels=0,
        parameter_attention_value_channels=0,
        branched_attention="none",
        branched_in_decoder="memory",
        branch_normalization="simplex",
        branch_top_k=0,
        branch_learning_rate_warmup_steps=400,
        branch_frozen_after_steps=0,
        pos="timing",
        layer_preprocess_sequence="none",
        layer_postprocess_sequence="dan",
        norm_epsilon=1e-6,
        layer_prepostprocess_dropout=0.1,
        attention_dropout=0.0,
        relu_dropout=0.0,
        label_smoothing=0.1,
        shared_embedding_and_softmax_weights=True,
        activation_dtype="float32",
        batch_size=3125,
        max_length=256,
        min_length_bucket=8,
        length_bucket_step=1.1,
        optimizer_adam_beta1=0.9,
        optimizer_adam_beta2=0.98,
        optimizer_adam_epsilon=1e-9,
        learning_rate_schedule="constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size",
        learning_rate_constant=1.0,
        learning_rate_warmup_steps=4000,
        clip_grad_norm=0.0,
    )


@register_hparams
def transformer_big() -> HParams:
    """The paper's big model: width 1024, 16 heads, 214M parameters at V 37,000.

    Source: Vaswani et al. 2017, table 3, row "big", and section 6.1. All other values
        are the base model's, including the batch of 25,000 tokens over 8 replicas.
    Published: newstest2014 en-de BLEU 28.4 (tokenized, compounds split, average of the
        last 20 checkpoints, beam 4, alpha 0.6; 300,000 steps).
    Measured: not yet measured.
    Command: t2t train --problem translate_ende_wmt14 --hparams_set transformer_big
        --data_dir DATA --output_dir OUT --train_steps 300000
    """
    return transformer_base().replace(
        hidden_size=1024,
        filter_size=4096,
        num_heads=16,
        layer_prepostprocess_dropout=0.3,
    )


@register_hparams
def transformer_big_enfr() -> HParams:
    """The paper's big model for English to French, with dropout 0.1.

    Source: Vaswani et al. 2017, section 6.1 ("dropout rate P_drop = 0.1, instead of
        0.3"). Differs from tensor2tensor's set of this name (models/transformer.py),
        whose filter_size 8192, separate embeddings and pre-norm wiring are not the
        paper's.
    Published: newstest2014 en-fr BLEU 41.8 in table 2, 41.0 in the text of section 6.1
        (tokenized, average of the last 20 checkpoints, beam 4, alpha 0.6; 300,000
        steps).
    Measured: not yet measured.
    Command: t2t train --problem translate_enfr_wmt14 --hparams_set transformer_big_enfr
        --data_dir DATA --output_dir OUT --train_steps 300000
    """
    return transformer_big().replace(layer_prepostprocess_dropout=0.1)


@register_hparams
def transformer_base_v3() -> HParams:
    """tensor2tensor's last base model: pre-norm, three dropouts, 8,000 warm-up steps.

    Source: tensor2tensor models/transformer.py, transformer_base_v3 (1.10 and later).
        Its batch_size is per replica too.
    Published: newstest2014 en-de "about 28" after a day on 8 GPUs (tensor2tensor's
        README; BLEU as in the paper, about 300,000 steps).
    Measured: not yet measured.
    Command: t2t train --problem translate_ende_wmt14 --hparams_set transformer_base_v3
        --data_dir DATA --output_dir OUT --train_steps 300000
    """
    return transformer_base().replace(
        pos="timing_concat",
        layer_preprocess_sequence="n",
        layer_postprocess_sequence="da",
        attention_dropout=0.1,
        relu_dropout=0.1,
        batch_size=4096,
        optimizer_adam_beta2=0.997,
        learning_rate_constant=2.0,
        learning_rate_warmup_steps=8000,
    )


@register_hparams
def transformer_big_v3() -> HParams:
    """tensor2tensor's last big model, with half the batch of its base model.

    Source: tensor2tensor models/transformer.py, transformer_big. Its batch_size was
        reduced from 4096 to 2048 in 2018 (commit 986e0f47) to fit GPUs with 12 GB.
    Published: none by tensor2tensor for these values.
    Measured: not yet measured.
    Command: t2t train --problem translate_ende_wmt14 --hparams_set transformer_big_v3
        --data_dir DATA --output_dir OUT --train_steps 300000
    """
    return transformer_base_v3().replace(
        hidden_size=1024,
        filter_size=4096,
        num_heads=16,
        layer_prepostprocess_dropout=0.3,
        batch_size=2048,
    )


@register_hparams
def transformer_marian() -> HParams:
    """Marian's base model, as in OPUS-MT: biases in attention, swish, other sinusoids.

    Source: config.json of Helsinki-NLP/opus-mt-en-de (MarianMT of Hugging Face's
        Transformers; the epsilon of normalization is torch's). The learning rate, which
        peaks at 3e-4 after 16,000 steps, and the clipping are those of Marian's usual
        recipe. In the first 2,000 steps, it is below 4e-5, as usual for fine-tuning.
    Published: none for these values.
    Measured: not yet measured.
    Command: t2t train --problem text_pairs --hparams_set transformer_marian
        --data_dir DATA --output_dir OUT --train_steps 300000
    """
    return transformer_base().replace(
        attention_bias=True,
        ffn_activation="swish",
        logit_bias=True,
        decoder_start="pad",
        pos="timing_halves",
        norm_epsilon=1e-5,
        max_length=512,
        learning_rate_schedule="constant*linear_warmup*rsqrt_decay",
        learning_rate_constant=3e-4 * 16_000**0.5,
        learning_rate_warmup_steps=16_000,
        clip_grad_norm=5.0,
    )


@register_hparams
def transformer_tiny() -> HParams:
    """A model for the embedded problem on a laptop's CPU: 2 layers, width 128, minutes.

    Source: the sizes of tensor2tensor's transformer_tiny and the paper's wiring. The
        learning rate peaks at 2.2e-3 after 400 steps, for runs of 1,300 steps. Batches
        are small, and there is no dropout because no sentence is repeated in such a
        run. There are few buckets because every length is compiled once.
    Published: none.
    Measured: translate_ende_synthetic test BLEU 94.73 (500 sentences, average of 5
        checkpoints, beam 4) after 1,300 steps, 4.5 minutes on two CPU cores
        (docs/results.md).
    Command: t2t train
    """
    return transformer_base().replace(
        hidden_size=128,
        filter_size=512,
        num_heads=4,
        num_hidden_layers=2,
        layer_prepostprocess_dropout=0.0,
        batch_size=2048,
        max_length=64,
        min_length_bucket=10,
        length_bucket_step=1.6,
        learning_rate_constant=0.5,
        learning_rate_warmup_steps=400,
    )


@register_hparams
def transformer_multi30k() -> HParams:
    """A model for small data such as Multi30k: 3 layers of width 256, three dropouts.

    Source: this project. The learning rate peaks at 2.0e-3 after 1,000 steps,
        (1000 * 256)^-0.5, and falls to zero in the last 8,600; a run of less than
        9,600 steps needs a smaller learning_rate_decay_steps. An epoch of Multi30k's
        29,000 pairs has about 250 updates. bfloat16 is 1.7 to 1.8 times as fast as
        float32 on a processor with instructions for it, and up to a tenth slower on
        another (docs/training.md).
    Published: Multi30k en-de test2016 BLEU 41.02 by a Transformer with 4 layers of
        width 128 (Wu et al. 2021; tokenized and lower-cased, so not comparable with
        sacreBLEU).
    Measured: Multi30k en-de sacreBLEU 42.24 on dev, 40.89 on test2016 (13a, cased; an
        ensemble of two, averages of 5 checkpoints, beam 8, alpha 1.5) after
        14,500 steps, about 132 minutes on two CPU cores (docs/results.md).
    Command: t2t train --ensemble 2 --problem text_pairs
        --hparams_set transformer_multi30k
        --train_source train.en --train_target train.de --dev_source val.en
        --dev_target val.de --test_source test2016.en --test_target test2016.de
        --vocab_size 6000 --data_dir DATA --output_dir OUT --train_steps 14500
        --save_checkpoints_steps 250 --average_last 5
        --decode_hparams beam_size=8,alpha=1.5
    """
    return transformer_base().replace(
        hidden_size=256,
        filter_size=512,
        num_heads=4,
        num_hidden_layers=3,
        attention_dropout=0.1,
        relu_dropout=0.1,
        layer_prepostprocess_dropout=0.25,
        label_smoothing=0.2,
        activation_dtype="bfloat16",
        batch_size=2048,
        packed_length=64,
        max_length=64,
        min_length_bucket=12,
        length_bucket_step=1.25,
        learning_rate_schedule=(
            "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size*linear_decay"
        ),
        learning_rate_warmup_steps=1000,
        learning_rate_decay_steps=8600,
    )
