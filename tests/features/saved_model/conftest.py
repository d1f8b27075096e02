"""A served system of a tiny model with subwords."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import tensorflow as tf

from t2t_repro.decoding.translator import Translator
from t2t_repro.features.saved_model.saved_model_export import export_saved_model
from t2t_repro.features.saved_model.served_translator import ServedTranslator
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text import SentencePieceTokenizer, train_sentencepiece
from tests.support.tiny_model import tiny_transformer

LINES = ["we sleep .", "the old horse sees a child today .", "wir schlafen ."] * 9
MAX_INPUT_LENGTH = 16  # so 15 tokens per piece
MAX_SOURCE_TOKENS = 100  # so 7 pieces, or 105 tokens


@pytest.fixture(scope="package")
def subword_system(tmp_path_factory):
    """Return a SavedModel, its signatures, and a translator of all hypotheses."""
    tokenizer = SentencePieceTokenizer(train_sentencepiece(LINES, vocab_size=300))
    size = tokenizer.vocab_size
    # Its translations differ; most random models repeat one character.
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1, "norm": "pre"}
    widths = dict.fromkeys(
        ("hidden_size", "attention_key_channels", "attention_value_channels"), 16
    )
    model = tiny_transformer(
        seed=2,
        source_vocab_size=size,
        target_vocab_size=size,
        filter_size=32,
        **layers,
        **widths,
    )
    hparams = DecodeHParams(beam_size=2, extra_length=4, batch_size=128)
    parts = (model, tokenizer, tokenizer)
    folder = tmp_path_factory.mktemp("subwords") / "system"
    served = ServedTranslator(*parts, hparams, MAX_INPUT_LENGTH, MAX_SOURCE_TOKENS)
    export_saved_model(served, folder)
    return SimpleNamespace(
        folder=folder,
        signatures=tf.saved_model.load(str(folder)).signatures,
        model=model,
        tokenizer=tokenizer,
        translator=Translator(
            *parts, hparams.replace(return_beams=True), MAX_INPUT_LENGTH
        ),
    )
