"""Show where the time of a compiled update goes, by part of the model.

The profiler of TensorFlow times every operation of the program that XLA compiled; the
compiled program names the layer that each one comes from. Operations overlap on several
threads, so the parts add up to more than the time of an update.

    python -m benchmarks.training.step_profile --shape base --batch_tokens 1024 \
        --data_dir DATA --hparams packed_length=64

DATA is the folder that `benchmarks/training/compare.py` prepared.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import re
import statistics
import tempfile
import time
from pathlib import Path

import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from benchmarks.training.compare import BATCH_TOKENS, HPARAMS_SET, SHAPES, hparams_of
from benchmarks.training.our_trainer import epoch, load_trainer
from t2t_repro.data.pipeline import Batch
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.loop import Trainer

UPDATES = 5
LOSS = "loss, embeddings"  # and what else has an entry per subword
OTHER = "other"
# The first pattern that matches the layer of an operation, or its kind, decides.
PARTS = {
    "Adam": r"adam/|/adam",
    "gradient norm": r"global_norm",
    "output layer, product": r"^dot .*transformer(_\d+)?/MatMul",
    "attention, products": r"^dot .*attention(_\d+)?/[^/]*(MatMul|[eE]insum)",
    "other matrix products": r"^dot ",
    "attention, softmax, mask, heads": r"attention(_\d+)?/",
    "residual, dropout, normalization": r"_residual|dropout",
    "feed-forward, bias, ReLU": r"feed_forward",
    LOSS: r"LogSumExp|UnsortedSegmentSum|GatherV2|transformer(_\d+)?/MatMul",
}
_INSTRUCTION = re.compile(
    r"^\s*(?:ROOT )?%?([\w.\-]+) = (\S+) ([\w\-]+)\((.*)$", re.MULTILINE
)


def parts_of(program: str, vocab_size: int) -> dict[str, str]:
    """Map the instructions of a compiled program to the parts of `PARTS`.

    Args:
        program: Optimized HLO, as text.
        vocab_size: Entries of the vocabulary.

    Returns:
        The part of each instruction by the instruction's name. An instruction without a
        layer belongs to that of its first operand.
    """
    found: dict[str, str] = {}
    layers: dict[str, str] = {}
    for name, shape, kind, rest in _INSTRUCTION.findall(program):
        operand = re.search(r"%([\w.\-]+)", rest)
        layer = re.search(r'op_name="([^"]*)"', rest)
        inherited = layers.get(operand[1], "") if operand else ""
        layers[name] = layer[1] if layer else inherited
        text = f"{kind} {layers[name]} {shape}"
        matches = (part for part, pattern in PARTS.items() if re.search(pattern, text))
        per_subword = re.search(rf"[\[,]{vocab_size}\]", shape)
        found[name] = next(matches, LOSS if per_subword else OTHER)
    return found


def seconds_by_part(
    space: xplane_pb2.XSpace, parts: dict[str, str]
) -> collections.Counter[str]:
    """Add up the time of the operations of each part.

    Args:
        space: What the profiler recorded.
        parts: See `parts_of`.
    """
    seconds: collections.Counter[str] = collections.Counter()
    for plane in space.planes:
        for event in itertools.chain(*(line.events for line in plane.lines)):
            name = plane.event_metadata[event.metadata_id].name
            if name in parts:
                seconds[parts[name]] += event.duration_ps / 1e12
    return seconds


def record(trainer: Trainer, batches: list[Batch]) -> xplane_pb2.XSpace:
    """Profile one update per batch."""
    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=3)
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder, options):
            for batch in batches:
                trainer.train_step(batch)["loss"].numpy()
        [path] = Path(folder).glob("**/*.xplane.pb")
        return xplane_pb2.XSpace.FromString(path.read_bytes())


def update_seconds(trainer: Trainer, batches: list[Batch]) -> float:
    """Return the median time of an update without the profiler."""
    seconds = []
    for batch in batches:
        start = time.perf_counter()
        trainer.train_step(batch)["loss"].numpy()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def parse_flags() -> argparse.Namespace:
    """Read the flags."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shape", choices=SHAPES, default="small")
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--batch_tokens", type=int)
    parser.add_argument("--hparams", default="", help="more changes")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def main() -> None:
    """Profile and print the table."""
    args = parse_flags()
    tf.config.threading.set_intra_op_parallelism_threads(args.threads)
    tf.config.threading.set_inter_op_parallelism_threads(args.threads)
    tokens = args.batch_tokens or BATCH_TOKENS[args.shape]
    hparams = hparams_of(SHAPES[args.shape], tokens, args.hparams)
    with tempfile.TemporaryDirectory() as output_dir:
        settings = TrainSettings(
            output_dir=output_dir, hparams_set=HPARAMS_SET, hparams=hparams
        )
        trainer = load_trainer(args.data_dir, settings)
    batches = list(itertools.islice(epoch(trainer, 0), UPDATES))
    update_seconds(trainer, batches)
    whole = update_seconds(trainer, batches)
    compiled = trainer.train_step.experimental_get_compiler_ir(batches[0], None)
    parts = parts_of(compiled(stage="optimized_hlo"), trainer.model.target_vocab_size)
    seconds = seconds_by_part(record(trainer, batches), parts)
    print(f"{args.shape}, {tokens} tokens: {1000 * whole:.0f} ms per update")
    for part, total in seconds.most_common():
        print(f"{1000 * total / len(batches):8.1f} ms  {part}")


if __name__ == "__main__":
    main()
