from __future__ import annotations

import pytest

from t2t_repro import catalogue

PARSER = {
    "hidden_size": 1024,
    "num_hidden_layers": 4,
    "attention_dropout": 0.2,
    "layer_prepostprocess_dropout": 0.2,
    "shared_embedding_and_softmax_weights": False,
    "max_length": 512,
    "learning_rate_constant": 0.5,
    "learning_rate_warmup_steps": 16_000,
}
PARSING = {
    "transformer_parsing_wsj": PARSER,
    "transformer_parsing_semi": {
        **PARSER,
        "attention_dropout": 0.1,
        "layer_prepostprocess_dropout": 0.1,
    },
    "transformer_parsing_small": {
        "hidden_size": 256,
        "filter_size": 512,
        "num_heads": 4,
        "num_hidden_layers": 3,
        "shared_embedding_and_softmax_weights": False,
        "layer_preprocess_sequence": "n",
        "layer_postprocess_sequence": "da",
        "attention_dropout": 0.1,
        "relu_dropout": 0.1,
        "symbol_dropout": 0.05,
        "layer_prepostprocess_dropout": 0.2,
        "word_positions": True,
        "depth_positions": True,
        "batch_size": 2048,
        "packed_length": 192,
        "packed_source_length": 112,
        "max_length": 192,
        "min_length_bucket": 20,
        "length_bucket_step": 1.5,
        "learning_rate_schedule": (
            "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size*linear_decay"
        ),
        "learning_rate_warmup_steps": 1200,
        "learning_rate_decay_steps": 10_500,
    },
}


@pytest.mark.parametrize("name", PARSING)
def test_a_parser_is_the_base_model_with_its_changes(name):
    base = catalogue.hparams("transformer_base")
    changes = base.diff(catalogue.hparams(name))
    expected = {k: v for k, v in PARSING[name].items() if getattr(base, k) != v}
    assert {key: value for key, (_, value) in changes.items()} == expected
