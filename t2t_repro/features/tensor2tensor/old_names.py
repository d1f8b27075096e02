"""tensor2tensor's problems, sets and hparams, and what they are called here.

Source: tensor2tensor 1.0 to 1.15, `data_generators/translate_*.py`,
`data_generators/algorithmic.py`, `data_generators/wsj_parsing.py`,
`models/transformer.py`, `layers/common_hparams.py`, `utils/decoding.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class OldProblem:
    """A problem of tensor2tensor.

    Attributes:
        name: Registered problem; empty if none has the same text.
        vocab_size: Number of subwords; None for the problem's own.
        answer: How the text differs, or the nearest problem.
    """

    name: str = ""
    vocab_size: int | None = None
    answer: str = ""


_NEWER_NEWS = "WMT 2014's text: News Commentary v9 instead of v13"
_NO_LENGTHS = "with up to 20 digits instead of 40"
_PTB = (
    "nearest: `t2t datagen --problem parsing_ptb --train_trees FILE --dev_trees FILE`"
)
_CHARACTERS = "subwords only; nearest: translate_ende_wmt14"

PROBLEMS = {
    "translate_ende_wmt32k": OldProblem("translate_ende_wmt14", 32768, _NEWER_NEWS),
    "translate_ende_wmt8k": OldProblem("translate_ende_wmt14", 8192, _NEWER_NEWS),
    "translate_ende_wmt_bpe32k": OldProblem(
        "translate_ende_wmt14",
        32000,
        "WMT 2014's text, tokenised by SentencePiece instead of Moses and BPE",
    ),
    "wmt_ende_tokens_32k": OldProblem("translate_ende_wmt14", 32768, "version 1.0"),
    "wmt_ende_bpe32k": OldProblem("translate_ende_wmt14", 32000, "version 1.0"),
    "translate_enfr_wmt32k": OldProblem("translate_enfr_wmt14", 32768),
    "translate_enfr_wmt8k": OldProblem("translate_enfr_wmt14", 8192),
    "wmt_enfr_tokens_32k": OldProblem("translate_enfr_wmt14", 32768, "version 1.0"),
    "translate_ende_wmt32k_packed": OldProblem(
        answer="packing is a setting of the batches here; nearest: translate_ende_wmt14"
    ),
    "translate_ende_wmt_characters": OldProblem(answer=_CHARACTERS),
    "translate_enfr_wmt_characters": OldProblem(
        answer="subwords only; nearest: translate_enfr_wmt14"
    ),
    "translate_enfr_wmt_small32k": OldProblem(
        answer="nearest: translate_enfr_wmt14, or your own files as text_pairs"
    ),
    "translate_enfr_wmt_small8k": OldProblem(
        answer="nearest: translate_enfr_wmt14, or your own files as text_pairs"
    ),
    "algorithmic_identity_decimal40": OldProblem(
        answer=f"nearest: algorithmic_identity, {_NO_LENGTHS}"
    ),
    "algorithmic_identity_binary40": OldProblem(
        answer=f"nearest: algorithmic_identity, {_NO_LENGTHS}"
    ),
    "algorithmic_reverse_decimal40": OldProblem(
        answer=f"nearest: algorithmic_reverse, {_NO_LENGTHS}"
    ),
    "algorithmic_reverse_binary40": OldProblem(
        answer=f"nearest: algorithmic_reverse, {_NO_LENGTHS}"
    ),
    "algorithmic_addition_decimal40": OldProblem(
        answer=f"nearest: algorithmic_addition, {_NO_LENGTHS}"
    ),
    "algorithmic_addition_binary40": OldProblem(
        answer=f"nearest: algorithmic_addition, {_NO_LENGTHS}"
    ),
    "algorithmic_sort_problem": OldProblem(answer="nearest: algorithmic_sort"),
    "parsing_english_ptb8k": OldProblem(answer=_PTB),
    "parsing_english_ptb16k": OldProblem(answer=_PTB),
    "wsj_parsing": OldProblem(answer=_PTB),
    "wsj_parsing_tokens_16k": OldProblem(answer=_PTB),
}
OTHER_TRANSLATION = (
    "give your text: `t2t datagen --problem text_pairs --train_source FILE "
    "--train_target FILE`"
)
OTHER_KIND = "only translation, parsing and algorithmic problems are here"
# Beginnings of the names of problems that are not here.
OTHER_PROBLEMS = {
    "translate_": OTHER_TRANSLATION,
    "summarize_": OTHER_TRANSLATION,
    "text2text_": OTHER_TRANSLATION,
    **dict.fromkeys(
        (
            "audio_",
            "cifar",
            "gym_",
            "image_",
            "img2img_",
            "languagemodel_",
            "librispeech",
            "sentiment_",
            "video_",
        ),
        OTHER_KIND,
    ),
}

NO_RELATIVE_ATTENTION = (
    "there is no relative attention, but a package can register it (docs/extending.md)"
)


@dataclass(frozen=True)
class OldSet:
    """An hparams set of tensor2tensor.

    Attributes:
        base: Registered set to start from; empty if no set has the same values.
        changes: Hparams that differ from it.
        answer: The nearest set, if no set has the same values.
    """

    base: str = ""
    changes: Mapping[str, str] = field(default_factory=dict)
    answer: str = ""


_V3 = "transformer_base_v3"
_BIG = "transformer_big_v3"
_BIG_SIZES = {"hidden_size": "1024", "filter_size": "4096", "num_heads": "16"}
_NO_RELATIVE = f"{NO_RELATIVE_ATTENTION}; nearest: transformer_base_v3"
_NO_TPU_SET = "TPUs and Adafactor are not supported; nearest: transformer_base_v3"
_NO_PREPEND = (
    "there are no language models; an encoder and a decoder with the same hparams: "
    "transformer_base_v3"
)

# "transformer_base" is tensor2tensor's last base model in its commands, and the paper's
# in `t2t train`.
SETS = {
    "transformer_base": OldSet(_V3),
    "transformer_base_v3": OldSet(_V3),
    "transformer_base_v2": OldSet(_V3, {"optimizer_adam_beta2": "0.98"}),
    "transformer_base_v1": OldSet(
        "transformer_base", {"batch_size": "4096", "pos": "timing_concat"}
    ),
    "transformer_base_single_gpu": OldSet(
        _V3,
        {
            "batch_size": "1024",
            "learning_rate_schedule": "constant*linear_warmup*rsqrt_decay",
            "learning_rate_constant": "0.1",
            "learning_rate_warmup_steps": "16000",
        },
    ),
    "transformer_big": OldSet(_BIG),
    "transformer_big_single_gpu": OldSet(
        _BIG,
        {
            "layer_prepostprocess_dropout": "0.1",
            "learning_rate_warmup_steps": "16000",
        },
    ),
    "transformer_big_dr1": OldSet(
        _V3, {**_BIG_SIZES, "layer_prepostprocess_dropout": "0.1"}
    ),
    "transformer_big_dr2": OldSet(
        _V3, {**_BIG_SIZES, "layer_prepostprocess_dropout": "0.2"}
    ),
    "transformer_big_enfr": OldSet(
        _V3,
        {
            **_BIG_SIZES,
            "filter_size": "8192",
            "layer_prepostprocess_dropout": "0.1",
            "shared_embedding_and_softmax_weights": "false",
        },
    ),
    "transformer_tiny": OldSet(
        _V3,
        {
            "num_hidden_layers": "2",
            "hidden_size": "128",
            "filter_size": "512",
            "num_heads": "4",
        },
    ),
    "transformer_small": OldSet(
        _V3,
        {
            "num_hidden_layers": "2",
            "hidden_size": "256",
            "filter_size": "1024",
            "num_heads": "4",
        },
    ),
    "transformer_test": OldSet(
        _V3,
        {
            "num_hidden_layers": "2",
            "hidden_size": "16",
            "filter_size": "8",
            "num_heads": "2",
        },
    ),
    "transformer_parsing_base": OldSet(
        _V3,
        {
            "attention_dropout": "0.2",
            "layer_prepostprocess_dropout": "0.2",
            "max_length": "512",
            "learning_rate_warmup_steps": "16000",
            "hidden_size": "1024",
            "shared_embedding_and_softmax_weights": "false",
        },
    ),
    "transformer_parsing_big": OldSet(
        _BIG,
        {
            "layer_prepostprocess_dropout": "0.1",
            "max_length": "512",
            "learning_rate_warmup_steps": "4000",
        },
    ),
    "transformer_parsing_ice": OldSet(
        _V3,
        {
            "batch_size": "4096",
            "learning_rate_schedule": "constant*linear_warmup*rsqrt_decay",
            "learning_rate_constant": "0.1",
            "learning_rate_warmup_steps": "16000",
            "shared_embedding_and_softmax_weights": "false",
        },
    ),
    **{
        f"transformer_{letter}{value}": OldSet(_V3, {name: number})
        for letter, name, values in (
            ("l", "num_hidden_layers", {"2": "2", "4": "4", "8": "8", "10": "10"}),
            ("h", "num_heads", {"1": "1", "4": "4", "16": "16", "32": "32"}),
            ("k", "attention_key_channels", {"128": "128", "256": "256"}),
            ("ff", "filter_size", {"1024": "1024", "4096": "4096"}),
            ("hs", "hidden_size", {"256": "256", "1024": "1024"}),
            ("dr", "layer_prepostprocess_dropout", {"0": "0.0", "2": "0.2"}),
            ("ls", "label_smoothing", {"0": "0.0", "2": "0.2"}),
        )
        for value, number in values.items()
    },
    "transformer_base_multistep8": OldSet(
        answer="nearest: transformer_base_v3 with update_tokens=32768"
    ),
    "transformer_parameter_attention_a": OldSet(
        answer="nearest: transformer_base_aop1, the paper's"
    ),
    "transformer_parameter_attention_b": OldSet(
        answer="nearest: transformer_base_aop2, the paper's"
    ),
    "transformer_relative": OldSet(answer=_NO_RELATIVE),
    "transformer_relative_tiny": OldSet(answer=_NO_RELATIVE),
    "transformer_relative_big": OldSet(answer=_NO_RELATIVE),
    "transformer_tpu": OldSet(answer=_NO_TPU_SET),
    "transformer_big_tpu": OldSet(answer=_NO_TPU_SET),
    "transformer_tiny_tpu": OldSet(answer=_NO_TPU_SET),
    "transformer_packed_tpu": OldSet(answer=_NO_TPU_SET),
    "transformer_prepend": OldSet(answer=_NO_PREPEND),
    "transformer_clean": OldSet(
        answer="nearest: transformer_base_v3 with label_smoothing=0,"
        "layer_prepostprocess_dropout=0,attention_dropout=0,relu_dropout=0"
    ),
}


@dataclass(frozen=True)
class OldHParam:
    """An hparam of tensor2tensor that is not one here.

    Attributes:
        answer: What replaces it, or why nothing has to.
        harmless: Values that ask for nothing; None if that is true of all values.
            Other values end the command.
        renamed: Name of the hparam that replaces it.
    """

    answer: str
    harmless: tuple[str, ...] | None = None
    renamed: str = ""


_NO_EFFECT = "not needed"
_SAMPLING = (
    "training does not read it; `t2t decode --decode_hparams beam_size=1,"
    "sampling_method=random` draws at random"
)
_TRUE = ("true", "1")
_FALSE = ("false", "0")

HPARAMS = {
    "learning_rate": OldHParam(
        "tensor2tensor 1.5 and later reads it in transformer_base_v1 and _v2 alone; "
        "there, and in earlier versions, learning_rate_constant is 10 times its value"
    ),
    "residual_dropout": OldHParam(
        "the name before version 1.2", renamed="layer_prepostprocess_dropout"
    ),
    "optimizer": OldHParam("Adam is the only optimizer", ("adam", "true_adam")),
    "optimizer_multistep_accumulate_steps": OldHParam(
        "update_tokens=25000 accumulates gradients (docs/operations.md)",
        ("0", "1"),
    ),
    "weight_decay": OldHParam("there is no weight decay", ("0", "0.0")),
    "learning_rate_decay_scheme": OldHParam(
        "learning_rate_schedule has all factors", ("noam", "none")
    ),
    "norm_type": OldHParam("layer normalization is the only kind", ("layer",)),
    "initializer": OldHParam(
        "weights are Glorot uniform", ("uniform_unit_scaling", "xavier")
    ),
    "initializer_gain": OldHParam("weights are Glorot uniform", ("1", "1.0")),
    "prepend_mode": OldHParam("there are no language models", ("none",)),
    "max_input_seq_length": OldHParam("max_length limits both sides", ("0",)),
    "max_target_seq_length": OldHParam("max_length limits both sides", ("0",)),
    "max_relative_position": OldHParam(NO_RELATIVE_ATTENTION, ("0",)),
    "scheduled_sampling_prob": OldHParam("there is none", ("0", "0.0")),
    "shared_embedding": OldHParam(
        "shared_embedding_and_softmax_weights shares all three", _FALSE
    ),
    "sampling_method": OldHParam(_SAMPLING),
    "sampling_temp": OldHParam(_SAMPLING),
    "sampling_keep_top_k": OldHParam(_SAMPLING),
    "pack_dataset": OldHParam(
        "packed_length=256 packs pairs into rows (docs/training.md)", _FALSE
    ),
    "use_fixed_batch_size": OldHParam("batch_size counts tokens", _FALSE),
    "causal_decoder_self_attention": OldHParam("the decoder is causal", _TRUE),
    "proximity_bias": OldHParam("there is none", _FALSE),
    "min_length": OldHParam("no pair is too short", ("0",)),
    "dropout": OldHParam("the Transformer does not read it"),
    "use_target_space_embedding": OldHParam("there is none (docs/differences.md)"),
    "multiply_embedding_mode": OldHParam(_NO_EFFECT, ("sqrt_depth",)),
    "eval_drop_long_sequences": OldHParam(_NO_EFFECT),
    "batch_shuffle_size": OldHParam(_NO_EFFECT),
    "symbol_modality_num_shards": OldHParam(_NO_EFFECT),
    "use_pad_remover": OldHParam(_NO_EFFECT),
    "daisy_chain_variables": OldHParam(_NO_EFFECT),
    "no_data_parallelism": OldHParam("CUDA_VISIBLE_DEVICES hides GPUs"),
    "summarize_grads": OldHParam("TensorBoard shows the gradient norm"),
    "summarize_vars": OldHParam(_NO_EFFECT),
    "shared_source_target_embedding": OldHParam("nothing reads it in tensor2tensor"),
    "attention_dropout_broadcast_dims": OldHParam(
        "dropout masks are not shared", ("",)
    ),
    "relu_dropout_broadcast_dims": OldHParam("dropout masks are not shared", ("",)),
    "layer_prepostprocess_dropout_broadcast_dims": OldHParam(
        "dropout masks are not shared", ("",)
    ),
}
# (name, value) of tensor2tensor -> value here.
HPARAM_VALUES = {("pos", "timing"): "timing_concat"}

_ONE_FILE = "translations are lines of one file"
_NO_VIDEO = "not needed: there are no images or videos"
_MLPERF = "not needed: there is no log for MLPerf"
_NO_BLOCKS = "there is no blockwise decoding"
DECODE_HPARAMS = {
    "batch_size": OldHParam(
        "not needed: batches are sized in tokens, and translations do not depend on it"
    ),
    "log_results": OldHParam(_NO_EFFECT),
    "log_targets": OldHParam(_NO_EFFECT),
    "save_images": OldHParam(_NO_VIDEO),
    "display_decoded_images": OldHParam(_NO_VIDEO),
    "frames_per_second": OldHParam(_NO_VIDEO),
    "border_percent": OldHParam(_NO_VIDEO),
    "max_display_outputs": OldHParam(_NO_VIDEO),
    "max_display_decodes": OldHParam(_NO_VIDEO),
    "vgg_ckpt_path": OldHParam(_NO_VIDEO),
    "decode_in_memory": OldHParam(_NO_EFFECT),
    "use_last_position_only": OldHParam(_NO_EFFECT),
    "eos_penalty": OldHParam("nothing reads it in tensor2tensor"),
    "min_length_ratio": OldHParam("nothing reads it in tensor2tensor"),
    "decode_timeout_mins": OldHParam("the checkpoints that exist now are used"),
    "summaries_log_dir": OldHParam("decoding writes no events for TensorBoard"),
    "decode_to_file": OldHParam("give the flag --decode_to_file"),
    "decode_reference": OldHParam(
        "`t2t-bleu --translation F --reference G` scores the translations"
    ),
    "block_size": OldHParam(_NO_BLOCKS, ("0",)),
    "guess_and_check_top_k": OldHParam(_NO_BLOCKS, ("0",)),
    "guess_and_check_epsilon": OldHParam(_NO_BLOCKS, ("-1",)),
    "insertion_parallel": OldHParam(_NO_BLOCKS, _FALSE),
    "num_samples": OldHParam("all lines are translated; cut the file", ("-1",)),
    "num_decodes": OldHParam("one translation per line; see return_beams", ("1",)),
    "max_input_size": OldHParam("long lines are translated in pieces", ("-1",)),
    "identity_output": OldHParam("translations are text, not ids", _FALSE),
    "delimiter": OldHParam(_ONE_FILE, ("\\n", "\n")),
    "shards": OldHParam(_ONE_FILE, ("1",)),
    "shard_id": OldHParam(_ONE_FILE, ("0",)),
    "shards_start_offset": OldHParam(_ONE_FILE, ("0",)),
    "shard_google_format": OldHParam(_ONE_FILE, _FALSE),
    "force_decode_length": OldHParam(
        "a translation ends where it ends; min_length=N makes it at least N tokens "
        "long",
        _FALSE,
    ),
    "skip_eos_postprocess": OldHParam("a translation ends where it ends", _FALSE),
    "multiproblem_task_id": OldHParam("a run has one problem", ("-1",)),
    "export_extra_infer_outputs": OldHParam(
        "`t2t export` writes fixed signatures (docs/serving.md)", ("",)
    ),
    "mlperf_mode": OldHParam(_MLPERF),
    "mlperf_decode_step": OldHParam(_MLPERF),
    "mlperf_threshold": OldHParam(_MLPERF),
    "mlperf_success": OldHParam(_MLPERF),
}
