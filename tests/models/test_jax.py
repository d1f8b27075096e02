from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.support import backend_probe, branch_probe
from tests.support.tiny_model import padded, random_sentences, tiny_transformer
from tests.support.without_tensorflow import COMPILED_QUICKLY

if importlib.util.find_spec("jax") is None:
    pytest.skip("jax is not installed: pip install jax", allow_module_level=True)

BATCH = {
    "inputs": padded(random_sentences(1, [7, 2, 4])),
    "targets": padded(random_sentences(2, [3, 5, 4])),
}


@pytest.fixture(scope="module")
def weights() -> list[np.ndarray]:
    return [v.numpy() for v in tiny_transformer(5, **backend_probe.OPTIONS).weights]


@pytest.fixture(scope="module")
def on_jax(weights, repository, tmp_path_factory) -> dict[str, np.ndarray]:
    folder = tmp_path_factory.mktemp("jax")
    given = {f"weight_{n}": array for n, array in enumerate(weights)} | BATCH
    np.savez(folder / "given.npz", **given)
    environment = os.environ | {
        "KERAS_BACKEND": "jax",
        "JAX_PLATFORMS": "cpu",
        **COMPILED_QUICKLY,
        "PYTHONPATH": str(repository),
    }
    subprocess.run(
        [sys.executable, backend_probe.__file__, "given.npz", "found.npz"],
        cwd=folder,
        env=environment,
        check=True,
    )
    with np.load(folder / "found.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def on_tensorflow(weights) -> dict[str, np.ndarray]:
    return backend_probe.results(BATCH, weights)


@pytest.mark.parametrize("name", ["logits", "loss", "scores", "trained_weights"])
def test_jax_computes_tensorflows_numbers(on_jax, on_tensorflow, name):
    np.testing.assert_allclose(on_jax[name], on_tensorflow[name], atol=1e-5)


def test_jax_finds_tensorflows_translations(on_jax, on_tensorflow):
    np.testing.assert_array_equal(on_jax["ids"], on_tensorflow["ids"])


@pytest.mark.parametrize("case", backend_probe.BRANCHED)
def test_layers_with_branches_equal_the_numpy_reference_on_jax(on_jax, case):
    for layer, expected in branch_probe.reference_outputs(case).items():
        np.testing.assert_allclose(on_jax[layer], expected, rtol=1e-5, atol=1e-5)
