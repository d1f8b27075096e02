"""Make a run of a MarianMT model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.huggingface.marian_config import HPARAMS_SET, MarianConfig
from t2t_repro.features.huggingface.marian_tokenizer import (
    MarianTokenizer,
    MarianVocabulary,
)
from t2t_repro.features.huggingface.marian_weights import weights_from
from t2t_repro.features.huggingface.tensor_files import read_safetensors
from t2t_repro.features.huggingface.torch_files import read_torch_file
from t2t_repro.files import MAX_BYTES, read_json
from t2t_repro.runs.imported_run import ImportedModel

_WEIGHTS = {"model.safetensors": read_safetensors, "pytorch_model.bin": read_torch_file}


def read_marian(folder: str | Path) -> ImportedModel:
    """Read a folder of a MarianMT model; load the catalogue before.

    Args:
        folder: Folder with config.json, model.safetensors or pytorch_model.bin,
            source.spm, target.spm and vocab.json; and target_vocab.json if the two
            vocabularies differ.

    Returns:
        The model, whose hparams set is `transformer_marian`.

    Raises:
        UserError: If a file is missing, damaged or of another model, or if the model
            cannot be computed here.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(
            f"received MODEL {folder}, expected a folder of a MarianMT model, as "
            "`save_pretrained` writes it"
        )
    config = MarianConfig(_json(folder, "config.json"))
    config.check_bad_words(_json(folder, "generation_config.json", {}))
    source, target = tokenizers = read_tokenizers(folder, config)
    name = next((name for name in _WEIGHTS if (folder / name).is_file()), None)
    if name is None:
        raise UserError(
            f"received {folder} without weights, expected {' or '.join(_WEIGHTS)}"
        )
    try:
        overrides = config.overrides()
        orders = source.vocabulary.order, target.vocabulary.order
        weights = weights_from(_WEIGHTS[name](folder / name), config, orders)
    except UsageError as error:
        raise UserError(f"{folder}: {error}") from error
    return ImportedModel(
        hparams_set=HPARAMS_SET,
        hparams=overrides,
        tokenizers=tokenizers,
        weights=weights,
    )


def read_tokenizers(
    folder: Path, config: MarianConfig
) -> tuple[MarianTokenizer, MarianTokenizer]:
    """Read the tokenizers of both sides.

    Args:
        folder: Folder of the model.
        config: Its settings.

    Returns:
        Two tokenizers, which may have the same ids; one object twice if they are equal.

    Raises:
        UserError: If a file is missing or damaged, or ids collide.
    """
    path = folder / "target_vocab.json"
    settings = _json(folder, "tokenizer_config.json", {})
    separate = settings.get("separate_vocabs", path.is_file())
    if type(separate) is not bool:
        raise UserError(
            f"received {folder / 'tokenizer_config.json'} with separate_vocabs="
            f"{separate!r:.99}, expected true or false"
        )
    if separate and config.shares_embeddings:
        raise UserError(
            f"received {folder} with two vocabularies and "
            "share_encoder_decoder_embeddings=true, expected false"
        )
    names = ["vocab.json", "target_vocab.json" if separate else "vocab.json"]
    vocabularies = [
        MarianVocabulary.from_ids(
            _json(folder, name), config.pad, config.eos, str(folder / name)
        )
        for name in names
    ]
    source, target = (
        MarianTokenizer(vocabulary, _bytes(folder / name), str(folder / name))
        for vocabulary, name in zip(
            vocabularies, ("source.spm", "target.spm"), strict=True
        )
    )
    same = source.to_bytes() == target.to_bytes()
    return (source, source) if same else (source, target)


def _bytes(path: Path) -> bytes:
    if path.is_file() and path.stat().st_size <= MAX_BYTES:
        return path.read_bytes()
    raise UserError(
        f"cannot read {path}, expected a SentencePiece model of at most {MAX_BYTES:,} "
        "bytes"
    )


def _json(folder: Path, name: str, default: dict[str, Any] | None = None) -> Any:
    """Read an object of JSON.

    Args:
        folder: Folder of the file.
        name: Name of the file.
        default: What to return if there is no such file; None means an error.
    """
    path = folder / name
    if default is not None and not path.exists():
        return default
    try:
        values = read_json(path)
    except OSError as error:
        raise UserError(
            f"cannot read {path}: {error.strerror or error}; expected a file of a "
            "MarianMT model"
        ) from error
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}") from error
    if not isinstance(values, dict):
        raise UserError(f"received {path} without names and values, expected both")
    return values
