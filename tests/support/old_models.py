"""Models of tensor2tensor for tests: those of `tests/golden`, and changed copies."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf

from t2t_repro.features.tensor2tensor.import_report import ImportRequest

GOLDEN = Path(__file__).parents[1] / "golden" / "tensor2tensor_models"
DATA = GOLDEN / "data"
NAMES = ("v3", "v1", "separate", "averaged")
STEP = 3000
NO_DROPOUT = "layer_prepostprocess_dropout=0,attention_dropout=0,relu_dropout=0"


def copied(name: str, folder: Path) -> Path:
    """Copy a model; the averaged one is inside the run that it is the average of."""
    if name == "averaged":
        folder = copied("v3", folder) / "averaged"
    shutil.copytree(GOLDEN / name, folder)
    return folder


def request(folder: Path, **changes: object) -> ImportRequest:
    values = {"model": str(folder), "data_dir": str(DATA)} | changes
    return ImportRequest(**values)


def expected(name: str) -> tuple[dict, Mapping[str, np.ndarray]]:
    """Return what the real tensor2tensor computed: texts and losses, and arrays."""
    texts = json.loads((GOLDEN / name / "expected.json").read_text("utf-8"))
    return texts, np.load(GOLDEN / name / "expected.npz")


def variables_of(folder: Path) -> dict[str, np.ndarray]:
    reader = tf.train.load_checkpoint(str(folder / f"model.ckpt-{STEP}"))
    names = reader.get_variable_to_shape_map()
    return {name: reader.get_tensor(name) for name in names}


def write_variables(folder: Path, variables: Mapping[str, np.ndarray]) -> None:
    """Replace the checkpoint of a folder by one with these variables."""
    for file in folder.glob("model.ckpt-*"):
        file.unlink()
    tf.raw_ops.SaveV2(
        prefix=str(folder / f"model.ckpt-{STEP}"),
        tensor_names=list(variables),
        shape_and_slices=[""] * len(variables),
        tensors=[tf.constant(value) for value in variables.values()],
    )


def change_settings(folder: Path, **changes: object) -> None:
    path = folder / "hparams.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
