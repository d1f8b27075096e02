"""Make tensor2tensor_models/: small models that the real tensor2tensor trained.

Run with an environment of tensor2tensor (Python 3.7; tensor2tensor==1.15.7,
tensorflow==1.15.5, numpy==1.18.5, protobuf==3.20.3, tensorflow-datasets==3.2.1,
tensorflow-probability==0.7.0, gym==0.15.7, mesh-tensorflow==0.1.13, kfac==0.2.3;
installed without their dependencies)::

    python tests/golden/make_tensor2tensor.py VENV
    python tests/golden/make_tensor2tensor.py VENV --check
    python tests/golden/make_tensor2tensor.py VENV --wmt SHARED/tensor2tensor

`--check` makes nothing, and compares what tensor2tensor computes with the models that
are there. `--wmt` makes `wmt8k/expected.npz` alone, logits of tensor2tensor's own test
checkpoint of 2017 with its vocabulary, which are in that folder.

The text is the embedded grammar's. Every model has `expected.json` and `expected.npz`,
written by `tensor2tensor_worker.py`:

- ids of some pairs of the dev text, their logits and their loss in nats per token;
- greedy and beam-search translations of some sources (beam 4, alpha 0.6);
- of models with Adam's moments: losses and weights of three updates without dropout.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from t2t_repro.features.synthetic.synthetic_corpus import sentences

GOLDEN = Path(__file__).resolve().parent / "tensor2tensor_models"
PAIRS = {"train": 6000, "dev": 60}
LONGEST = 6  # words; so small a model learns no longer sentences
STEPS, EVERY = 3000, 750
# Name -> hparams set, problem, and whether Adam's moments are kept.
MODELS = {
    "v3": ("golden_v3", "translate_golden", True),
    "v1": ("golden_v1", "translate_golden", False),
    "separate": ("golden_separate", "translate_golden_two", True),
}
AVERAGED, WMT = "averaged", "wmt8k"
_STRIP = """
import glob, os, sys, tensorflow.compat.v1 as tf
path = sys.argv[1]
reader = tf.train.load_checkpoint(path)
names = sorted(reader.get_variable_to_shape_map())
kept = [n for n in names if n == "global_step" or n.startswith("transformer/")]
for name in kept:
    tf.get_variable(name, initializer=reader.get_tensor(name))
for file in glob.glob(path + ".*"):
    os.remove(file)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    step = int(path.rpartition("-")[2])
    prefix = path.rpartition("-")[0]
    tf.train.Saver().save(session, prefix, step, write_meta_graph=False)
"""


class Tensor2Tensor:
    """The real tensor2tensor in its own environment.

    Args:
        venv: Folder of the environment.
        folder: Folder that all files are in.
    """

    def __init__(self, venv: Path, folder: Path) -> None:
        self.bin = venv.absolute() / "bin"
        self.folder = folder

    def python(self, *arguments: object) -> None:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        environment |= {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
        subprocess.run(
            [self.bin / "python", "-W", "ignore", *map(str, arguments)],
            check=True,
            cwd=self.folder,
            env=environment,
        )

    def command(self, name: str, **flags: object) -> None:
        """Run a command of tensor2tensor, without the conversion of its code."""
        program = (
            "import sys, runpy\n"
            "from tensorflow.python import autograph\n"
            "autograph.tf_convert = lambda function, *args, **kwargs: function\n"
            "sys.argv = sys.argv[1:]\n"
            "runpy.run_path(sys.argv[0], run_name='__main__')\n"
        )
        given = [f"--{flag}={value}" for flag, value in flags.items()]
        self.python("-c", program, self.bin / name, *given)

    def prepare(self, problem: str) -> None:
        self.command(
            "t2t-datagen",
            t2t_usr_dir=self.folder / "golden",
            problem=problem,
            data_dir=self.folder / "data",
            tmp_dir=self.folder / "tmp",
        )

    def train(self, name: str, hparams_set: str, problem: str) -> None:
        self.command(
            "t2t-trainer",
            t2t_usr_dir=self.folder / "golden",
            problem=problem,
            data_dir=self.folder / "data",
            model="transformer",
            hparams_set=hparams_set,
            output_dir=self.folder / name,
            train_steps=STEPS,
            local_eval_frequency=EVERY,
            schedule="train",
            random_seed=1,
        )

    def average(self, name: str) -> None:
        self.command(
            "t2t-avg-all",
            model_dir=self.folder / name,
            output_dir=self.folder / AVERAGED,
            n=3,
            min_steps=EVERY,
            wait_minutes=0,
        )

    def compute(self, names: list[str]) -> None:
        worker = Path(__file__).resolve().with_name("tensor2tensor_worker.py")
        self.python(worker, self.folder, *names)


def write_inputs(folder: Path) -> None:
    """Write the package, the text and the description of the models."""
    package = Path(__file__).with_name("tensor2tensor_package.py")
    (folder / "golden").mkdir()
    shutil.copyfile(package, folder / "golden" / "__init__.py")
    (folder / "tmp").mkdir()
    for split, count in PAIRS.items():
        drawn = sentences(split, 40 * count)
        short = (pair for pair in drawn if len(pair.english.split()) <= LONGEST)
        found = [*itertools.islice(short, count)]
        for side, language in (("en", "english"), ("de", "german")):
            lines = "".join(f"{getattr(pair, language)}\n" for pair in found)
            (folder / "tmp" / f"{split}.{side}").write_text(lines, encoding="utf-8")
    described = {
        name: {"set": hparams_set, "problem": problem}
        for name, (hparams_set, problem, _) in MODELS.items()
    }
    described[AVERAGED] = described["v3"]
    (folder / "models.json").write_text(json.dumps(described), encoding="utf-8")


def make_wmt(tensor2tensor: Tensor2Tensor, shared: Path) -> None:
    """Compute logits of tensor2tensor's own test checkpoint, of another version."""
    folder = tensor2tensor.folder
    write_inputs(folder)
    described = {
        "set": "transformer_test",
        "problem": "translate_ende_wmt8k",
        "data_dir": str(shared),
        "checkpoint": str(shared / "transformer_test_ckpt"),
        "target_space_id": 8,  # German, the only row that its training changed
        "every": 64,
    }
    (folder / "models.json").write_text(json.dumps({WMT: described}), "utf-8")
    tensor2tensor.compute([WMT])
    (GOLDEN / WMT).mkdir(exist_ok=True)
    shutil.copyfile(folder / WMT / "expected.npz", GOLDEN / WMT / "expected.npz")


def newest(folder: Path) -> Path:
    """Return the prefix of the newest checkpoint."""
    steps = [int(p.stem.rpartition("-")[2]) for p in folder.glob("model.ckpt-*.index")]
    return folder / f"model.ckpt-{max(steps)}"


def keep(folder: Path, name: str) -> None:
    """Copy what the tests read, without the paths of this machine."""
    kept = GOLDEN / name
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    prefix = newest(folder / name)
    files = [
        *prefix.parent.glob(f"{prefix.name}.index"),
        *prefix.parent.glob(f"{prefix.name}.data-*"),
        *prefix.parent.glob("expected.*"),
    ]
    for file in files:
        shutil.copyfile(file, kept / file.name)
    (kept / "checkpoint").write_text(f'model_checkpoint_path: "{prefix.name}"\n')
    for text in ("hparams.json", "flags_t2t.txt", "flags.txt"):
        if (prefix.parent / text).exists():
            content = (prefix.parent / text).read_text().replace(str(folder), "/golden")
            (kept / text).write_text(content)


def make(tensor2tensor: Tensor2Tensor) -> None:
    folder = tensor2tensor.folder
    write_inputs(folder)
    for problem in sorted({problem for _, problem, _ in MODELS.values()}):
        tensor2tensor.prepare(problem)
    for name, (hparams_set, problem, has_adam) in MODELS.items():
        tensor2tensor.train(name, hparams_set, problem)
        if not has_adam:
            tensor2tensor.python("-c", _STRIP, newest(folder / name))
    tensor2tensor.average("v3")
    tensor2tensor.python("-c", _STRIP, newest(folder / AVERAGED))
    tensor2tensor.compute([*MODELS, AVERAGED])
    for name in (*MODELS, AVERAGED):
        keep(folder, name)
    (GOLDEN / "data").mkdir(exist_ok=True)
    for file in [
        *(folder / "data").glob("vocab.*"),
        *(folder / "data").glob("*-dev-*"),
    ]:
        shutil.copyfile(file, GOLDEN / "data" / file.name)


def check(tensor2tensor: Tensor2Tensor) -> None:
    """Compare what tensor2tensor computes now with the files that are there."""
    folder = tensor2tensor.folder
    write_inputs(folder)
    shutil.copytree(GOLDEN, folder, dirs_exist_ok=True)
    names = [*MODELS, AVERAGED]
    tensor2tensor.compute(names)
    for name in names:
        texts = [
            json.loads((place / name / "expected.json").read_text("utf-8"))
            for place in (GOLDEN, folder)
        ]
        arrays = [np.load(place / name / "expected.npz") for place in (GOLDEN, folder)]
        largest = max(
            np.abs(arrays[0][key] - arrays[1][key]).max() for key in arrays[0]
        )
        same = all(texts[0][key] == texts[1][key] for key in ("greedy", "beam"))
        sys.stdout.write(
            f"{name}: largest difference {largest:.1e}, translations equal: {same}\n"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("venv", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--folder", help="keep all files of tensor2tensor there")
    parser.add_argument("--wmt", type=Path, metavar="FOLDER")
    args = parser.parse_args()
    folder = Path(args.folder or tempfile.mkdtemp(prefix="golden-")).absolute()
    folder.mkdir(exist_ok=True)
    tensor2tensor = Tensor2Tensor(args.venv, folder)
    if args.wmt:
        make_wmt(tensor2tensor, args.wmt.absolute())
    else:
        (check if args.check else make)(tensor2tensor)
    return 0


if __name__ == "__main__":
    sys.exit(main())
