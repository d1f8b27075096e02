"""Several seeds at once on JAX: their weights, translations and results."""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.accelerator.rows.batches import export_corpus
from benchmarks.accelerator.rows.corpus import Corpus
from benchmarks.accelerator.rows.found import FoundSystem
from benchmarks.accelerator.rows.job import Job, Outcome, save_jobs
from benchmarks.accelerator.rows.results import Seed, branches
from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.data.pipeline import evaluation_batches
from t2t_repro.decoding.translator import search_translations
from t2t_repro.models.transformer import Transformer
from t2t_repro.runs.evaluators import likelihood_evaluator
from tests.support import seeds_probe
from tests.support.accelerator_jobs import make_job
from tests.support.without_tensorflow import run_without_tensorflow

if importlib.util.find_spec("jax") is None:
    pytest.skip("jax is not installed: pip install jax", allow_module_level=True)

# Two processes that compile for JAX, and a search on TensorFlow.
pytestmark = pytest.mark.slow

HPARAMS = (
    "hidden_size=16,filter_size=24,num_heads=2,num_hidden_layers=1,batch_size=300,"
    "max_length=24,min_length_bucket=12,length_bucket_step=2,"
    "learning_rate_constant=2,learning_rate_warmup_steps=4,attention_dropout=0.2"
)
NAMES = {"train": "train", "dev": "val", "test": "test2016"}


@pytest.fixture(scope="module")
def job(data) -> Job:
    return make_job(
        data,
        "weighted_transformer_base",
        HPARAMS,
        seeds=[5, 6],
        name="weighted",
        row="forms/weighted",
        scale="long",
        keeps_weights=True,
    )


@pytest.fixture(scope="module", params=["", "packed_length=48"], ids=["", "packed"])
def folder(request, data, job, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("jobs")
    hparams = job.hparams.parse(request.param)
    job = dataclasses.replace(job, run=job.run | {"hparams": hparams.to_dict()})
    corpus, _ = export_corpus(data, hparams, job.seeds, job.updates)
    save_jobs(folder, [job], corpus)
    return folder


@pytest.fixture(scope="module")
def corpus(folder) -> Corpus:
    return Corpus.load(folder / "corpus.npz")


@pytest.fixture(scope="module")
def outcome(job, folder) -> Outcome:
    ended = train_all(folder)
    assert ended.returncode == 0, ended.stderr
    assert "translated" in ended.stdout
    return Outcome.load(folder / "outcomes" / f"{job.name}.npz")


def train_all(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    return run_without_tensorflow(
        "benchmarks.accelerator.rows.train",
        *("--jobs", folder, "--to", folder / "outcomes", "--processes", 1, *flags),
    )


@pytest.fixture(scope="module")
def model(job, outcome) -> Transformer:
    """The model with the averaged weights of the first seed, on TensorFlow."""
    model = Transformer.from_hparams(job.hparams, *job.vocab_sizes)
    for variable in model.weights:
        variable.assign(outcome.arrays[f"averaged/{variable.path}"][0])
    return model


def test_seeds_at_once_train_as_each_seed_does_alone(folder):
    ended = run_without_tensorflow(seeds_probe.__file__, folder, folder / "found.npz")
    assert ended.returncode == 0, ended.stderr
    with np.load(folder / "found.npz") as found:
        pairs = [("together", "alone"), ("averaged", "mean")]
        for first, second in pairs:
            names = [x.removeprefix(first) for x in found if x.startswith(f"{first}/")]
            assert len(names) > 10
            for name in names:
                np.testing.assert_allclose(
                    found[first + name], found[second + name], rtol=1e-4, atol=1e-5
                )
        nll = found["nll"]
    assert nll.shape == (4, 2)
    assert len(np.unique(nll)) == nll.size


def test_tensorflow_measures_the_nll_of_the_averaged_weights(data, job, outcome, model):
    plan = BatchPlan.for_evaluation(job.hparams)
    evaluate = likelihood_evaluator(model, evaluation_batches(data.shards("dev"), plan))
    found = outcome.arrays["nll/averaged"][0]
    assert evaluate(8, None)["nll"] == pytest.approx(found, rel=1e-5)


def test_tensorflow_finds_the_same_translations(job, corpus, outcome, model):
    sources = corpus.sources.padded(range(len(corpus.sources)), 24)
    signature = [tf.TensorSpec([None, None], tf.int32)]
    search = tf.function(
        lambda inputs: search_translations(model, inputs, job.decode_hparams).ids,
        input_signature=signature,
        autograph=False,
    )
    expected = search(tf.constant(sources)).numpy()[:, 0]
    found = outcome.arrays["ids/averaged"][0]
    assert found.any()
    width = min(found.shape[1], expected.shape[1])
    np.testing.assert_array_equal(found[:, :width], expected[:, :width])
    assert not found[:, width:].any()
    assert not expected[:, width:].any()


def test_an_outcome_describes_its_training(job, outcome):
    assert outcome.arrays["steps"].tolist() == [2, 4, 6, 8]
    assert outcome.arrays["loss"].shape == outcome.arrays["nll"].shape == (4, 2)
    assert (outcome.precision, outcome.device) == ("float32", "cpu")
    ids = outcome.arrays["ids/last"]
    assert (outcome.processes, ids.dtype, len(ids)) == (1, np.uint16, 2)
    kappa = branches(outcome, 0)
    assert [*kappa][:4] == [
        "encoder/layer_0/kappa/0",
        "encoder/layer_0/kappa/1",
        "encoder/layer_0/alpha/0",
        "encoder/layer_0/alpha/1",
    ]
    sums = np.add(kappa["encoder/layer_0/kappa/0"], kappa["encoder/layer_0/kappa/1"])
    np.testing.assert_allclose(sums, 1, atol=2e-5)


def test_a_job_with_an_outcome_is_not_trained_again(folder, outcome):
    ended = train_all(folder)
    assert (ended.returncode, ended.stdout) == (0, "")


def test_jobs_that_do_not_begin_in_time_are_a_failure(folder):
    ended = run_without_tensorflow(
        "benchmarks.accelerator.rows.train",
        *("--jobs", folder, "--to", folder / "late", "--seconds", 0),
    )
    assert ended.returncode == 1
    assert "no outcome of weighted: the same command trains them" in ended.stderr


def test_an_unknown_job_is_a_failure(folder):
    ended = train_all(folder, "--only", "unknown")
    assert ended.returncode == 1
    assert "expected one of ['weighted']" in ended.stderr


def test_a_result_has_the_scores_of_the_translations(
    data, job, corpus, outcome, tmp_path
):
    for split, name in NAMES.items():
        for side in ("en", "de"):
            (tmp_path / f"{name}.{side}").write_text(split)
    # As if the search had found every reference.
    tokenizer = data.tokenizers()[1]
    pieces = [tuple(ids) for ids in np.split(corpus.sources.ids, corpus.sources.ends)]
    reference = {}
    for split in ("dev", "test"):
        sources, targets = data.raw_text(split)
        encoded = data.tokenizers()[0].encode_batch(sources)
        reference |= dict(zip([(*x, 1) for x in encoded], targets, strict=True))
    nothing = np.zeros((len(corpus.sources), 40), np.uint16)
    perfect = nothing.copy()
    for number in range(len(corpus.sources)):
        found = [*tokenizer.encode(reference[pieces[number]]), 1]
        perfect[number, : len(found)] = found
    systems = {
        name: FoundSystem(data, job.hparams, corpus, ids)
        for name, ids in (("last", nothing), ("averaged", perfect))
    }
    seed = Seed(job, outcome, 1, data, systems)
    result = seed.result(tmp_path)
    assert (result.system, result.scale, result.seed) == (
        "weighted_transformer_base",
        "long",
        6,
    )
    assert result.scores["BLEU (dev), averaged"] == pytest.approx(100)
    assert result.scores["BLEU (dev+test), averaged"] == pytest.approx(100)
    assert result.scores["BLEU (test)"] == 0
    nll = float(outcome.arrays["nll"][-1, 1])
    assert result.scores["nll (dev)"] == pytest.approx(nll)
    assert result.scores["perplexity (dev)"] == pytest.approx(math.exp(nll))
    assert (result.steps, result.versions["keras"][:2]) == (8, "3.")
    assert result.hardware == "1 x cpu, 2 seeds at once"
    curve = seed.curve()
    assert (curve.name, curve.seed) == ("weighted_transformer_base-long", 6)
    assert curve.nll == [round(float(x), 5) for x in outcome.arrays["nll"][:, 1]]
    assert curve.settings["filter_size"] == 24
