"""The weights that a warm start takes, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

from t2t_repro.errors import UserError
from t2t_repro.runs.warm_start import TakenRows, warm_start
from t2t_repro.text import SymbolTokenizer
from t2t_repro.training.checkpoints import model_variables, write_checkpoint
from tests.support.tiny_model import randomize
from tests.support.tiny_training import tiny_model

# Three special symbols and eight others: the vocabulary of `tiny_model`.
DIGITS = SymbolTokenizer(list("01234567"))
OTHERS = SymbolTokenizer(list("xy5z1w"))


def values_of(model) -> dict[str, np.ndarray]:
    return {variable.path: variable.numpy() for variable in model.weights}


def saved(folder, **options) -> tuple[str, dict[str, np.ndarray]]:
    model = tiny_model(**options)
    randomize(model, seed=3)
    return write_checkpoint(model_variables(model), folder, 7), values_of(model)


def started(path, model, here=DIGITS, there=DIGITS):
    return warm_start(model, path, (here, here), (there, there))


def test_every_weight_of_an_equal_model_is_taken_bit_by_bit(tmp_path):
    path, values = saved(tmp_path)
    model = tiny_model()
    result = started(path, model)
    assert sorted(result.taken) == sorted(values)
    assert (result.rows, result.left, result.unused) == ({}, {}, [])
    now = values_of(model)
    assert all(now[name].tobytes() == values[name].tobytes() for name in values)
    assert f"{len(values)} of {len(values)} weights taken" in result.lines()[0]


def test_only_rows_of_pieces_in_both_vocabularies_are_taken(tmp_path):
    path, values = saved(tmp_path)
    size = OTHERS.vocab_size
    model = tiny_model(source_vocab_size=size, target_vocab_size=size)
    before = values_of(model)
    result = started(path, model, here=OTHERS)
    (name,) = result.rows
    assert name.endswith("shared_embedding/table")
    # Three special symbols, 5 (id 5 here, 8 there) and 1 (id 7 here, 4 there).
    assert result.rows[name] == TakenRows(5, 9)
    expected = before[name].copy()
    for here, there in ((0, 0), (1, 1), (2, 2), (5, 8), (7, 4)):
        expected[here] = values[name][there]
    assert values_of(model)[name].tobytes() == expected.tobytes()
    assert len(result.taken) == len(values) - 1
    assert any("5 of 9 rows taken" in line for line in result.lines())


def test_vocabularies_of_one_size_share_only_the_rows_of_equal_pieces(tmp_path):
    path, values = saved(tmp_path)
    model = tiny_model()
    before = values_of(model)
    # 7 and 0 have changed places, 1 and 2 are other pieces.
    result = started(path, model, here=SymbolTokenizer(list("7xy34560")))
    (name,) = result.rows
    assert result.rows[name] == TakenRows(9, 11)
    expected = values[name].copy()
    expected[3], expected[10] = values[name][10], values[name][3]
    expected[4:6] = before[name][4:6]
    assert values_of(model)[name].tobytes() == expected.tobytes()
    assert len(result.taken) == len(values) - 1


def test_weights_of_other_shapes_and_missing_ones_stay_and_are_named(tmp_path):
    path, values = saved(tmp_path, filter_size=10)
    model = tiny_model(num_encoder_layers=2)
    before = values_of(model)
    result = started(path, model)
    now = values_of(model)
    for name in result.left:
        assert now[name].tobytes() == before[name].tobytes()
    for name in result.taken:
        assert now[name].tobytes() == values[name].tobytes()
    missing = [n for n, why in result.left.items() if why.startswith("missing")]
    assert missing
    assert all("layer_1" in name for name in missing)
    lines = "\n".join(result.lines())
    assert "not taken, missing in the checkpoint" in lines
    assert "not taken, shape [8, 10] there and [8, 12] here" in lines


def test_separate_matrices_begin_with_the_shared_one(tmp_path):
    path, values = saved(tmp_path)
    model = tiny_model(tie_embeddings=False)
    result = started(path, model)
    (shared,) = (v for n, v in values.items() if n.endswith("shared_embedding/table"))
    tables = [v for n, v in values_of(model).items() if n.endswith("/table")]
    assert len(tables) == 3
    assert all((table == shared).all() for table in tables)
    assert result.unused == []


def test_learned_positions_are_taken_with_any_vocabulary(tmp_path):
    positions = {"positions": "learned", "max_positions": 5}
    path, values = saved(tmp_path, **positions)
    model = tiny_model(**positions)
    result = started(path, model, here=SymbolTokenizer(list("7xy34560")))
    tables = [name for name in values if name.endswith("_positions/table")]
    assert len(tables) == 2
    now = values_of(model)
    for name in tables:
        assert name in result.taken
        assert now[name].tobytes() == values[name].tobytes()


def test_a_model_of_which_nothing_fits_is_refused(tmp_path):
    path, _ = saved(tmp_path)
    model = tiny_model(
        hidden_size=6,
        attention_key_channels=6,
        attention_value_channels=6,
        filter_size=5,
    )
    with pytest.raises(UserError, match="no weight fits"):
        started(path, model)
