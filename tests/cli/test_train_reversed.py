from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow as tf

from t2t_repro.cli.main import main
from tests.support.trained_system import HPARAMS

# Many words on one side and one on the other give vocabularies of different sizes.
WORDS = ("house", "tree", "river", "window", "garden", "kitchen", "mountain", "street")


def text_files(folder: Path) -> list[str]:
    flags = []
    for split, count in (("train", 64), ("dev", 8)):
        sides = {
            "source": [f"{a} {b} {a}{b}" for a in WORDS for b in WORDS][:count],
            "target": ["x"] * count,
        }
        for side, lines in sides.items():
            path = folder / f"{split}.{side}"
            path.write_text("".join(f"{line}\n" for line in lines))
            flags += [f"--{split}_{side}", str(path)]
    return flags


@pytest.mark.usefixtures("eager")
def test_training_and_scoring_a_reversed_problem_swap_the_sides(tmp_path, capsys):
    # Inputs are the side of the small vocabulary: an id of the other side is outside
    # its embedding, and looking it up fails.
    code = main(
        [
            *("train", "--problem", "text_pairs_rev", *text_files(tmp_path)),
            *("--separate_vocabularies", "--vocab_size", "400", "--keep_duplicates"),
            *("--hparams_set", "transformer_tiny", "--hparams", HPARAMS),
            *("--data_dir", f"{tmp_path}/data", "--output_dir", f"{tmp_path}/run"),
            *("--train_steps", "1", "--eval_sentences", "0", "--average_last", "0"),
            *("--attention_samples", "0", "--xla", "off"),
        ]
    )
    assert code == 0
    printed = capsys.readouterr()
    assert f"\nreference    {WORDS[0]} " in printed.out
    assert "embeddings and softmax share no weights" in printed.err
    paths = {name for name, _ in tf.train.list_variables(str(tmp_path / "run"))}
    assert [name for name in paths if "source_embedding" in name]
    assert not [name for name in paths if "shared_embedding" in name]
