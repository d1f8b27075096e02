"""The benchmark runs without TensorFlow, and its figures follow from each other."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import pytest

from tests.support.without_tensorflow import run_without_tensorflow

if importlib.util.find_spec("jax") is None:
    pytest.skip("jax is not installed: pip install jax", allow_module_level=True)

SMALL = (
    "hidden_size=32,filter_size=64,num_heads=2,num_hidden_layers=1,"
    "layer_prepostprocess_dropout=0.1,attention_dropout=0.1,relu_dropout=0.1"
)


def benchmark(json_file, *flags):
    """Run the benchmark on a small model, and return its output and figures."""
    ended = run_without_tensorflow(
        "benchmarks.accelerator.measure",
        *("--hparams", SMALL, "--vocab_size", 200, "--matmul_size", 64),
        *("--steps", 3, "--json", json_file, *flags),
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout, json.loads(json_file.read_text())


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    file = tmp_path_factory.mktemp("float32") / "found.json"
    flags = (
        "--model",
        "transformer_big",
        "--dtype",
        "float32",
        "--shapes",
        "6x10,3x20",
    )
    return benchmark(file, *flags)


def test_the_figures_of_a_shape_follow_from_each_other(measured):
    printed, found = measured
    for shape, (rows, length) in zip(found["shapes"], [(6, 10), (3, 20)], strict=True):
        assert (shape["rows"], shape["length"], shape["steps"]) == (rows, length, 3)
        seconds = shape["step_seconds"]
        tokens = rows * length / seconds
        assert shape["target_tokens_per_second"] == pytest.approx(tokens)
        rate = found["matmul_flops_per_second"]
        assert shape["share_of_matmul_rate"] == pytest.approx(
            shape["flops"] / seconds / rate
        )
        assert f"{tokens:,.0f}" in printed
        # Weights and both moments of Adam, in bytes.
        assert shape["step_bytes"] > 3 * 4 * found["parameters"]
        # About ln(200), the loss of a model that knows nothing.
        assert 5 < shape["loss"] < 6


def test_the_facts_name_what_was_measured(measured):
    _, found = measured
    expected = {
        "model": "transformer_big",
        "dtype": "float32",
        "platform": "cpu",
        "vocab_size": 200,
        "matmul_size": 64,
    }
    assert {name: found[name] for name in expected} == expected


def test_bfloat16_can_be_chosen(tmp_path):
    flags = ("--dtype", "bfloat16", "--shapes", "6x10")
    printed, found = benchmark(tmp_path / "found.json", *flags)
    assert "dtype: bfloat16" in printed
    assert found["dtype"] == "bfloat16"
    assert 5 < found["shapes"][0]["loss"] < 6


@pytest.fixture(scope="module")
def probed(repository, tmp_path_factory):
    file = tmp_path_factory.mktemp("probe") / "found.json"
    probe = repository / "tests" / "support" / "accelerator_probe.py"
    ended = run_without_tensorflow(probe, file)
    assert ended.returncode == 0, ended.stderr
    return json.loads(file.read_text())


def test_the_formula_counts_the_operations_that_xla_counts(probed):
    # XLA also counts normalizations, softmaxes, dropout and Adam.
    for formula, compiler in probed["flops"]:
        assert formula < compiler < 1.06 * formula


def test_a_shape_that_needs_too_much_memory_is_skipped_and_reported(probed):
    reason = "skipped: out of memory: RESOURCE_EXHAUSTED: 5 bytes"
    assert probed["out_of_memory"] == f"9x8 {reason}"


def test_other_errors_of_jax_are_not_taken_for_lack_of_memory(probed):
    assert probed["other_error"] == "INTERNAL: a fault"


def test_another_backend_than_jax_is_refused(repository):
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.accelerator.measure"],
        env={"PYTHONPATH": str(repository), "KERAS_BACKEND": "numpy"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert "expected jax: set the environment variable KERAS_BACKEND" in ended.stderr
