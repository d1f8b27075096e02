"""Half precision learns as much as float32 on the embedded translation problem."""

from __future__ import annotations

import pytest

from t2t_repro import catalogue
from t2t_repro.data.prepare import prepare
from t2t_repro.data.request import PairFiles
from t2t_repro.features.synthetic.synthetic_corpus import sentences
from t2t_repro.runs import TrainSettings, train
from tests.support.tiny_training import metrics_of

pytestmark = pytest.mark.slow

PAIRS = {"train": 6_000, "dev": 300}
# One layer, and one batch shape to compile.
HPARAMS = (
    "hidden_size=64,filter_size=256,num_heads=4,num_hidden_layers=1,batch_size=1024,"
    "max_length=32,min_length_bucket=32,learning_rate_warmup_steps=60,"
    "learning_rate_constant=0.5"
)
STEPS = 150


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grammar")
    files = {}
    for split, count in PAIRS.items():
        pairs = [*sentences(split, count)]
        files[split] = PairFiles(folder / f"{split}.en", folder / f"{split}.de")
        for path, side in zip(
            (files[split].source, files[split].target),
            ("english", "german"),
            strict=True,
        ):
            lines = [f"{getattr(pair, side)}\n" for pair in pairs]
            path.write_text("".join(lines), encoding="utf-8")
    problem = catalogue.problem("text_pairs").with_files(files)
    settings = problem.prepare_settings.replace(vocab_size=500)
    return prepare(problem, folder / "data", settings=settings)


@pytest.fixture(scope="module")
def learned(data, tmp_path_factory):
    """Return the dev nll by dtype, before and after training."""
    found = {}
    for dtype in ("float32", "bfloat16", "float16"):
        folder = tmp_path_factory.mktemp(dtype)
        settings = TrainSettings(
            output_dir=str(folder),
            hparams_set="transformer_tiny",
            hparams=f"{HPARAMS},activation_dtype={dtype}",
            train_steps=STEPS,
            local_eval_frequency=STEPS,
            log_step_count_steps=1,
            eval_sentences=0,
            attention_samples=0,
            average_last=0,
        )
        train(settings, data)
        lines = metrics_of(folder)
        (last,) = metrics_of(folder, "eval")
        found[dtype] = lines[0]["nll"], last["nll"]
        overflows = sum(line.get("overflowed_updates", 0) for line in lines)
        # For the table in docs/training.md
        print(dtype, *found[dtype], f"{overflows} overflows")  # noqa: T201
    return found


def test_float32_learns(learned):
    first, last = learned["float32"]
    assert last < first - 2.5


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_has_the_dev_loss_of_float32(learned, dtype):
    assert learned[dtype][1] == pytest.approx(learned["float32"][1], rel=0.02)
