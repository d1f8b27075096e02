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
    **dict.fromkeys(
        ("translate_enfr_wmt_small32k", "translate_enfr_wmt_small8k"),
        OldProblem(
            answer="nearest: translate_enfr_wmt14, or your own files as text_pairs"
        ),
    ),
    **{
        f"algorithmic_{task}_{digits}40": OldProblem(
            answer=f"nearest: algorithmic_{task}, with up to 20 digits instead of 40"
        )
        for task in ("identity", "reverse", "addition")
        for digits in ("decimal", "binary")
    },
    "algorithmic_sort_problem": OldProblem(answer="nearest: algorithmic_sort"),
    **dict.fromkeys(
        (
            *("parsing_english_ptb8k", "parsing_english_ptb16k"),
            *("wsj_parsing", "wsj_parsing_tokens_16k"),
        ),
        OldProblem(
            answer="nearest: `t2t datagen --problem parsing_ptb --train_trees FILE "
            "--dev_trees FILE`"
        ),
    ),
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
            *("audio_", "cifar", "gym_", "image_", "img2img_", "languagemodel_"),
            *("librispeech", "sentiment_", "video_"),
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
_NO_RELATIVE = f"{NO_RELATIVE_ATTENTION}; nearest: transformer_base_v3"
_NO_TPU_SET = "TPUs and Adafactor are not supported; nearest: transformer_base_v3"
_NO_PREPEND = (
    "there are no language models; an encoder and a decoder with the same hparams: "
    "transformer_base_v3"
)


def _set(base: str, **changes: object) -> OldSet:
    return OldSet(base, {name: str(value) for name, value in changes.items()})


_SINGLE_GPU = {
    "learning_rate_schedule": "constant*linear_warmup*rsqrt_decay",
    "learning_rate_constant": 0.1,
    "learning_rate_warmup_steps": 16000,
}
_BIG_SIZES = {"hidden_size": 1024, "filter_size": 4096, "num_heads": 16}
_SEPARATE = {"shared_embedding_and_softmax_weights": "false"}

# "transformer_base" is tensor2tensor's last base model in its commands, and the paper's
# in `t2t train`.
SETS = {
    "transformer_base": _set(_V3),
    "transformer_base_v3": _set(_V3),
    "transformer_base_v2": _set(_V3, optimizer_adam_beta2=0.98),
    "transformer_base_v1": _set(
        "transformer_base", batch_size=4096, pos="timing_concat"
    ),
    "transformer_base_single_gpu": _set(_V3, batch_size=1024, **_SINGLE_GPU),
    "transformer_big": _set(_BIG),
    "transformer_big_single_gpu": _set(
        _BIG, layer_prepostprocess_dropout=0.1, learning_rate_warmup_steps=16000
    ),
    "transformer_big_dr1": _set(_V3, **_BIG_SIZES, layer_prepostprocess_dropout=0.1),
    "transformer_big_dr2": _set(_V3, **_BIG_SIZES, layer_prepostprocess_dropout=0.2),
    "transformer_big_enfr": _set(
        _V3,
        **(_BIG_SIZES | {"filter_size": 8192}),
        layer_prepostprocess_dropout=0.1,
        **_SEPARATE,
    ),
    "transformer_tiny": _set(
        _V3, num_hidden_layers=2, hidden_size=128, filter_size=512, num_heads=4
    ),
    "transformer_small": _set(
        _V3, num_hidden_layers=2, hidden_size=256, filter_size=1024, num_heads=4
    ),
    "transformer_test": _set(
        _V3, num_hidden_layers=2, hidden_size=16, filter_size=8, num_heads=2
    ),
    "transformer_parsing_base": _set(
        _V3,
        attention_dropout=0.2,
        layer_prepostprocess_dropout=0.2,
        max_length=512,
        learning_rate_warmup_steps=16000,
        hidden_size=1024,
        **_SEPARATE,
    ),
    "transformer_parsing_big": _set(
        _BIG,
        layer_prepostprocess_dropout=0.1,
        max_length=512,
        learning_rate_warmup_steps=4000,
    ),
    "transformer_parsing_ice": _set(_V3, batch_size=4096, **_SINGLE_GPU, **_SEPARATE),
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
    **{
        f"transformer_{name}": OldSet(answer=answer)
        for answer, names in (
            (_NO_RELATIVE, ("relative", "relative_tiny", "relative_big")),
            (_NO_TPU_SET, ("tpu", "big_tpu", "tiny_tpu", "packed_tpu")),
            (_NO_PREPEND, ("prepend",)),
        )
        for name in names
    },
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


def _each(
    names: str, answer: str, harmless: tuple[str, ...] | None = None
) -> dict[str, OldHParam]:
    """Return hparams with one answer; the names are separated by spaces."""
    return dict.fromkeys(names.split(), OldHParam(answer, harmless))


_TRUE = ("true", "1")
_FALSE = ("false", "0")

HPARAMS = {
    "residual_dropout": OldHParam(
        "the name before version 1.2", renamed="layer_prepostprocess_dropout"
    ),
    **_each(
        "learning_rate",
        "tensor2tensor 1.5 and later reads it in transformer_base_v1 and _v2 alone; "
        "there, and in earlier versions, learning_rate_constant is 10 times its value",
    ),
    **_each("optimizer", "Adam is the only optimizer", ("adam", "true_adam")),
    **_each(
        "optimizer_multistep_accumulate_steps",
        "update_tokens=25000 accumulates gradients (docs/operations.md)",
        ("0", "1"),
    ),
    **_each("weight_decay", "there is no weight decay", ("0", "0.0")),
    **_each(
        "learning_rate_decay_scheme",
        "learning_rate_schedule has all factors",
        ("noam", "none"),
    ),
    **_each("norm_type", "layer normalization is the only kind", ("layer",)),
    **_each(
        "initializer", "weights are Glorot uniform", ("uniform_unit_scaling", "xavier")
    ),
    **_each("initializer_gain", "weights are Glorot uniform", ("1", "1.0")),
    **_each("prepend_mode", "there are no language models", ("none",)),
    **_each(
        "max_input_seq_length max_target_seq_length",
        "max_length limits both sides",
        ("0",),
    ),
    **_each("max_relative_position", NO_RELATIVE_ATTENTION, ("0",)),
    **_each("scheduled_sampling_prob", "there is none", ("0", "0.0")),
    **_each(
        "shared_embedding",
        "shared_embedding_and_softmax_weights shares all three",
        _FALSE,
    ),
    **_each(
        "sampling_method sampling_temp sampling_keep_top_k",
        "training does not read it; `t2t decode --decode_hparams beam_size=1,"
        "sampling_method=random` draws at random",
    ),
    **_each(
        "pack_dataset",
        "packed_length=256 packs pairs into rows (docs/training.md)",
        _FALSE,
    ),
    **_each("use_fixed_batch_size", "batch_size counts tokens", _FALSE),
    **_each("causal_decoder_self_attention", "the decoder is causal", _TRUE),
    **_each("proximity_bias", "there is none", _FALSE),
    **_each("min_length", "no pair is too short", ("0",)),
    **_each("dropout", "the Transformer does not read it"),
    **_each("use_target_space_embedding", "there is none (docs/differences.md)"),
    **_each("multiply_embedding_mode", _NO_EFFECT, ("sqrt_depth",)),
    **_each(
        "eval_drop_long_sequences batch_shuffle_size symbol_modality_num_shards "
        "use_pad_remover daisy_chain_variables summarize_vars",
        _NO_EFFECT,
    ),
    **_each("no_data_parallelism", "CUDA_VISIBLE_DEVICES hides GPUs"),
    **_each("summarize_grads", "TensorBoard shows the gradient norm"),
    **_each("shared_source_target_embedding", "nothing reads it in tensor2tensor"),
    **_each(
        "attention_dropout_broadcast_dims relu_dropout_broadcast_dims "
        "layer_prepostprocess_dropout_broadcast_dims",
        "dropout masks are not shared",
        ("",),
    ),
}
# (name, value) of tensor2tensor -> value here.
HPARAM_VALUES = {("pos", "timing"): "timing_concat"}

_ONE_FILE = "translations are lines of one file"
_NO_BLOCKS = "there is no blockwise decoding"
DECODE_HPARAMS = {
    **_each(
        "batch_size",
        "not needed: batches are sized in tokens, and translations do not depend on it",
    ),
    **_each(
        "log_results log_targets decode_in_memory use_last_position_only", _NO_EFFECT
    ),
    **_each(
        "save_images display_decoded_images frames_per_second border_percent "
        "max_display_outputs max_display_decodes vgg_ckpt_path",
        "not needed: there are no images or videos",
    ),
    **_each("eos_penalty min_length_ratio", "nothing reads it in tensor2tensor"),
    **_each("decode_timeout_mins", "the checkpoints that exist now are used"),
    **_each("summaries_log_dir", "decoding writes no events for TensorBoard"),
    **_each("decode_to_file", "give the flag --decode_to_file"),
    **_each(
        "decode_reference",
        "`t2t-bleu --translation F --reference G` scores the translations",
    ),
    **_each("block_size guess_and_check_top_k", _NO_BLOCKS, ("0",)),
    **_each("guess_and_check_epsilon", _NO_BLOCKS, ("-1",)),
    **_each("insertion_parallel", _NO_BLOCKS, _FALSE),
    **_each("num_samples", "all lines are translated; cut the file", ("-1",)),
    **_each("num_decodes", "one translation per line; see return_beams", ("1",)),
    **_each("max_input_size", "long lines are translated in pieces", ("-1",)),
    **_each("identity_output", "translations are text, not ids", _FALSE),
    **_each("delimiter", _ONE_FILE, ("\\n", "\n")),
    **_each("shards", _ONE_FILE, ("1",)),
    **_each("shard_id shards_start_offset", _ONE_FILE, ("0",)),
    **_each("shard_google_format", _ONE_FILE, _FALSE),
    **_each(
        "force_decode_length",
        "a translation ends where it ends; min_length=N makes it at least N tokens "
        "long",
        _FALSE,
    ),
    **_each("skip_eos_postprocess", "a translation ends where it ends", _FALSE),
    **_each("multiproblem_task_id", "a run has one problem", ("-1",)),
    **_each(
        "export_extra_infer_outputs",
        "`t2t export` writes fixed signatures (docs/serving.md)",
        ("",),
    ),
    **_each(
        "mlperf_mode mlperf_decode_step mlperf_threshold mlperf_success",
        "not needed: there is no log for MLPerf",
    ),
}
