"""Train or decode with this package on Keras's JAX backend. Argument: the job as JSON.

The request "matmul" measures the rate of a large product of matrices.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import jax
import numpy as np

from benchmarks.accelerator.jax_step import PRECISIONS, require_jax, with_precision
from benchmarks.accelerator.measure import Benchmark, matmul_rate
from benchmarks.accelerator.peers.job import Job, translations, updates
from benchmarks.accelerator.rows.search import compiled_search
from benchmarks.training.worker import Counts, serve
from t2t_repro import catalogue
from t2t_repro.constants import EOS_ID, INPUTS
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.settings.hparams import HParams


def hparams_of(job: Job) -> HParams:
    """Return the hparams of a job."""
    hparams = catalogue.hparams("transformer_base").replace(
        num_hidden_layers=job.layers,
        hidden_size=job.width,
        filter_size=job.filter,
        num_heads=job.heads,
        layer_prepostprocess_dropout=job.dropout,
        label_smoothing=job.smoothing,
    )
    return with_precision(hparams, job.precision)


def train(job: Job, benchmark: Benchmark) -> Iterator[Counts]:
    """Make updates of the weights."""
    batch = jax.device_put(benchmark.batch(job.rows, job.length))
    compiled = benchmark.step.lower(benchmark.initial, batch).compile()
    last = [jax.device_put(benchmark.initial), None]

    def update() -> None:
        last[:] = compiled(last[0], batch)

    return updates(job, update, lambda: jax.block_until_ready(last))


def decode(job: Job, benchmark: Benchmark) -> Iterator[Counts]:
    """Translate; the random model hardly ever writes EOS, so outputs are long."""
    ids = benchmark.batch(job.rows, job.length)[INPUTS]
    ids[:, -1] = EOS_ID
    settings = DecodeHParams(
        beam_size=job.beam_size, extra_length=job.output_length - job.length
    )
    search = compiled_search(benchmark.model, settings)
    weights = [x.value for x in benchmark.model.trainable_variables]
    return translations(job, lambda: np.asarray(search(weights, ids)))


def main(text: str) -> None:
    """Make the model and serve."""
    require_jax()
    job = Job.from_json(text)
    with jax.default_matmul_precision(PRECISIONS[job.precision]):
        benchmark = Benchmark(hparams_of(job), job.vocab_size)
        dtype = benchmark.hparams.activation_dtype
        work = (train if job.task == "train" else decode)(job, benchmark)

        def warm_up() -> int:
            next(work)
            return 1

        def matmul() -> dict[str, float]:
            return {"rate": matmul_rate(job.matmul_size, dtype)}

        serve(warm_up, work, {"matmul": matmul})


if __name__ == "__main__":
    main(*sys.argv[1:])
