"""tensor2tensor's hparams and decode hparams that do not exist here.

Source: tensor2tensor 1.15 `layers/common_hparams.py`, `models/transformer.py`,
`utils/decoding.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2t_repro.features.tensor2tensor.sets import NO_RELATIVE_ATTENTION


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
