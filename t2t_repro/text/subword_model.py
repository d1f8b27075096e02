"""Load a SentencePiece model, and refuse one that the package cannot use."""

from __future__ import annotations

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from t2t_repro.constants import EOS_ID, PAD_ID, UNK_ID
from t2t_repro.errors import UserError
from t2t_repro.text.sampled_subwords import SPACE


def load_processor(content: bytes, name: str) -> sentencepiece.SentencePieceProcessor:
    """Load a model.

    Args:
        content: Content of the model's file.
        name: Name of the model for messages.

    Raises:
        UserError: If it is not a SentencePiece model, has other special ids, or has
            spaces elsewhere than at the start of its subwords.
    """
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    except RuntimeError as error:
        raise UserError(
            f"received vocabulary file {name}, expected a SentencePiece model: "
            f"it is damaged or something else"
        ) from error
    _check_special_ids(processor, name)
    _check_spaces(content, name)
    return processor


def _check_special_ids(
    processor: sentencepiece.SentencePieceProcessor, name: str
) -> None:
    found = (processor.pad_id(), processor.eos_id(), processor.unk_id())
    if found != (PAD_ID, EOS_ID, UNK_ID):
        raise UserError(
            f"received SentencePiece model {name} with pad, eos, unk ids {found}, "
            f"expected {(PAD_ID, EOS_ID, UNK_ID)}: train it with `spm_train "
            f"--pad_id=0 --eos_id=1 --unk_id=2 --bos_id=-1 --byte_fallback`"
        )


def _check_spaces(content: bytes, name: str) -> None:
    """Refuse subwords from which words cannot be told apart."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(content)
    pieces = (piece.piece for piece in proto.pieces)
    wrong = next((piece for piece in pieces if SPACE in piece.lstrip(SPACE)), None)
    if wrong is None and proto.normalizer_spec.escape_whitespaces:
        return
    found = "escape_whitespaces=false" if wrong is None else f"the subword {wrong!r}"
    raise UserError(
        f"received SentencePiece model {name} with {found}, expected a space (U+2581) "
        "only at the start of a subword: train it without "
        "treat_whitespace_as_suffix, split_by_whitespace=false, "
        "escape_whitespaces=false and symbols with spaces"
    )
