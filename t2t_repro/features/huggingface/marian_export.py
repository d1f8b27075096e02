"""Write a trained system as a MarianMT model of Hugging Face's Transformers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from t2t_repro.constants import EOS_ID, PAD_ID, UNK_ID
from t2t_repro.errors import UserError
from t2t_repro.features.huggingface.marian_config import (
    HPARAMS_SET,
    check_marian,
    config_values,
)
from t2t_repro.features.huggingface.marian_tokenizer import (
    UNKNOWN,
    MarianTokenizer,
    MarianVocabulary,
)
from t2t_repro.features.huggingface.marian_weights import tensors_of
from t2t_repro.features.huggingface.tensor_files import write_safetensors
from t2t_repro.files import (
    atomic_folder,
    atomic_write,
    check_new_folder,
    description_text,
)
from t2t_repro.runs.system import System
from t2t_repro.text import SentencePieceTokenizer, Tokenizer

_BEAM_SIZE = 4  # of `generate`, as here


def export_system(system: System, export_dir: str | Path) -> Path:
    """Write a folder that `MarianMTModel` and `MarianTokenizer` load.

    Args:
        system: The trained system.
        export_dir: Folder to create.

    Returns:
        The folder.

    Raises:
        UserError: If MarianMT cannot compute the model or has no such tokenizer, the
            folder exists or cannot be written, or for an ensemble.
    """
    check_new_folder(export_dir)
    system.check_single("MarianMT has no ensembles")
    check_marian(system.run.model, system.run.hparams)
    tokenizers = marian_tokenizers(system.source_tokenizer, system.target_tokenizer)
    weights = {v.path: np.array(v.numpy(), np.float32) for v in system.model.weights}
    _check_start(system, weights)
    system.warn_of_raw_text()
    try:
        with atomic_folder(Path(export_dir)) as folder:
            _write(system, tokenizers, weights, folder)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"cannot write {export_dir}: {reason}.") from error
    return Path(export_dir)


def marian_tokenizers(
    source: Tokenizer, target: Tokenizer
) -> tuple[MarianTokenizer, MarianTokenizer]:
    """Return tokenizers with the ids that a MarianMT model will have.

    Raises:
        UserError: If a tokenizer is not SentencePiece's.
    """
    made = as_marian(source), as_marian(target)
    first, second = (tokenizer.vocabulary for tokenizer in made)
    if (first.pad, first.eos) != (second.pad, second.eos):
        raise UserError(
            "MarianMT has one id of padding and one of the end for both sides: "
            f"received {first.pad, first.eos} of the source and "
            f"{second.pad, second.eos} of the target."
        )
    return made


def as_marian(tokenizer: Tokenizer) -> MarianTokenizer:
    """Return a tokenizer of MarianMT with the same ids.

    Raises:
        UserError: If it is not SentencePiece's.
    """
    if isinstance(tokenizer, MarianTokenizer):
        return tokenizer
    if not isinstance(tokenizer, SentencePieceTokenizer):
        raise UserError(
            "MarianMT has SentencePiece vocabularies: received one in "
            f"{tokenizer.filename_suffix}, expected {MarianTokenizer.filename_suffix} "
            f"or {SentencePieceTokenizer.filename_suffix}; prepare the data with one."
        )
    entries = tuple(tokenizer.pieces(range(tokenizer.vocab_size)))
    if entries[UNK_ID] != UNKNOWN:
        raise UserError(
            f"MarianMT writes unknown pieces as {UNKNOWN}: received a SentencePiece "
            f"model with {entries[UNK_ID]}."
        )
    vocabulary = MarianVocabulary(entries, PAD_ID, EOS_ID, UNK_ID)
    return MarianTokenizer(vocabulary, tokenizer.to_bytes())


def _check_start(system: System, weights: dict[str, np.ndarray]) -> None:
    """Refuse a model whose decoder starts from zeros, and MarianMT's would not.

    The row of padding of a target embedding that is not the softmax is never read
    here, so it can be set to zero.
    """
    if system.model.decoder_start == "pad":
        return
    own = "transformer/target_embedding/table"
    if own in weights:
        weights[own][PAD_ID] = 0.0
    elif weights["transformer/shared_embedding/table"][PAD_ID].any():
        raise UserError(
            "MarianMT's decoder starts from the embedding of padding: received "
            "decoder_start=zeros, and an embedding of padding that is not zero, "
            "because the softmax shares it; train with decoder_start=pad, as "
            "hparams_set="
            f"{HPARAMS_SET} does."
        )


def _write(
    system: System,
    tokenizers: tuple[MarianTokenizer, MarianTokenizer],
    weights: dict[str, np.ndarray],
    folder: Path,
) -> None:
    h, model = system.run.hparams.resolved(), system.model
    source, target = (tokenizer.vocabulary for tokenizer in tokenizers)
    shared = "transformer/shared_embedding/table" in weights
    separate = source != target
    layers = (h.num_encoder_layers, h.num_decoder_layers)
    orders = (source.order, target.order)
    write_safetensors(folder / "model.safetensors", tensors_of(weights, layers, orders))
    sizes = (model.source_vocab_size, model.target_vocab_size)
    config = config_values(h, sizes, source.pad, source.eos, shared=shared)
    ends = (
        "decoder_start_token_id",
        "eos_token_id",
        "forced_eos_token_id",
        "pad_token_id",
    )
    _json(folder / "config.json", config)
    _json(
        folder / "generation_config.json",
        {
            **{name: config[name] for name in ends},
            "bad_words_ids": [[source.pad]],
            "max_length": config["max_position_embeddings"],
            "num_beams": _BEAM_SIZE,
        },
    )
    _json(folder / "vocab.json", _ids(source))
    if separate:
        _json(folder / "target_vocab.json", _ids(target))
    _json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "MarianTokenizer",
            "model_max_length": config["max_position_embeddings"],
            "separate_vocabs": separate,
            "pad_token": source.entries[source.pad],
            "eos_token": source.entries[source.eos],
            "unk_token": source.entries[source.unk],
        },
    )
    for name, tokenizer in zip(("source.spm", "target.spm"), tokenizers, strict=True):
        atomic_write(folder / name, tokenizer.spm)


def _ids(vocabulary: MarianVocabulary) -> dict[str, int]:
    return {entry: token for token, entry in enumerate(vocabulary.entries)}


def _json(path: Path, values: dict) -> None:
    atomic_write(path, description_text(values))
