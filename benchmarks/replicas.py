"""Draw the loss of one problem on 1 to 8 replicas, 2 x 2 workers, and accumulated.

    python benchmarks/replicas.py --steps 60 --folder /tmp/replicas

Every run has updates of the same 512 tokens, without dropout, on this machine's CPU.
Prints the largest difference from one replica, and writes losses.json and, if
matplotlib is installed, losses.png. Runs in the folder that are complete are not
trained again.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

PROBLEM = "algorithmic_identity"
UPDATE_TOKENS = 512
HPARAMS = (
    "hidden_size=32,filter_size=64,num_heads=2,num_hidden_layers=1,max_length=64,"
    "min_length_bucket=64,layer_prepostprocess_dropout=0,"
    f"learning_rate_warmup_steps=30,update_tokens={UPDATE_TOKENS}"
)
# Name of a run -> workers, replicas per worker, steps per update
RUNS = {
    "1 replica": (1, 1, 1),
    "2 replicas": (1, 2, 1),
    "4 replicas": (1, 4, 1),
    "8 replicas": (1, 8, 1),
    "2 workers x 2 replicas": (2, 2, 1),
    "1 replica x 8 steps": (1, 1, 8),
    "2 replicas x 4 steps": (1, 2, 4),
}


def main() -> None:
    """Train all runs, one after the other, and compare their losses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--folder", type=Path, required=True)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    t2t("datagen", "--problem", PROBLEM, "--data_dir", str(args.folder / "data"))
    losses = {}
    for name, shape in RUNS.items():
        run = args.folder / name.replace(" ", "_")
        train(args.folder, run, args.steps, *shape)
        losses[name] = losses_of(run)
        difference = max(
            abs(a - b) for a, b in zip(losses[name], losses["1 replica"], strict=True)
        )
        print(f"{name}: last loss {losses[name][-1]:.4f}, differs by {difference:.1e}")
        (args.folder / "losses.json").write_text(json.dumps(losses))
        draw(losses, args.folder / "losses.png")


def t2t(*arguments: str) -> None:
    """Run a command, and raise an error if it fails."""
    subprocess.run(command(arguments), check=True)


def command(arguments: tuple[str, ...]) -> list[str]:
    """Return the command line of `t2t` in this environment."""
    return [sys.executable, "-m", "t2t_repro.cli.main", *arguments]


def train(
    folder: Path, run: Path, train_steps: int, workers: int, replicas: int, steps: int
) -> None:
    """Train on one process per worker; output goes to files beside the run."""
    batch_size = UPDATE_TOKENS // (workers * replicas * steps)
    if (run / f"model.ckpt-{train_steps}.index").exists():
        return
    arguments = (
        *("train", "--problem", PROBLEM, "--data_dir", str(folder / "data")),
        *("--output_dir", str(run), "--hparams_set", "transformer_tiny"),
        *("--hparams", f"{HPARAMS},batch_size={batch_size}", "--xla", "off"),
        *("--train_steps", str(train_steps), "--log_step_count_steps", "1"),
        *("--eval_sentences", "0", "--attention_samples", "0", "--no_final_score"),
        *("--cpu_replicas", str(replicas)),
    )
    hosts = [f"127.0.0.1:{port}" for port in free_ports(workers)]
    processes = []
    for number in range(workers):
        config = {
            "cluster": {"worker": hosts},
            "task": {"type": "worker", "index": number},
        }
        environment = os.environ | {"TF_CONFIG": json.dumps(config)}
        with run.with_name(f"{run.name}.{number}.txt").open("w") as output:
            processes.append(
                subprocess.Popen(
                    command(arguments),
                    env=environment,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            )
    codes = [process.wait() for process in processes]
    if any(codes):
        raise SystemExit(f"{run} failed: see {run}.0.txt")


def free_ports(count: int) -> list[int]:
    """Return ports of this machine that no program uses."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [open_socket.getsockname()[1] for open_socket in sockets]
    for open_socket in sockets:
        open_socket.close()
    return ports


def losses_of(run: Path) -> list[float]:
    """Read the loss of every update."""
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    records = map(json.loads, lines)
    return [record["loss"] for record in records if record["split"] == "train"]


def draw(losses: dict[str, list[float]], path: Path) -> None:
    """Draw the curves, wide ones first, so that equal ones show as stripes."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        print("matplotlib is not installed: no picture")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (curves, differences) = pyplot.subplots(1, 2, figsize=(11, 4))
    alone = losses["1 replica"]
    for number, (name, values) in enumerate(losses.items()):
        steps = range(1, len(values) + 1)
        color, width = f"C{number}", 1.5 * (len(losses) - number)
        curves.plot(steps, values, color=color, linewidth=width, label=name)
        distance = [(a - b) * 1e7 for a, b in zip(values, alone, strict=True)]
        # Beside each other, or equal differences would hide each other.
        places = [step + (number - len(losses) / 2) / 10 for step in steps]
        differences.plot(places, distance, ".", color=color, markersize=4, label=name)
    curves.set(title="Loss: all curves coincide", ylabel="nats per target token")
    differences.set(title="Loss minus that of 1 replica", ylabel="1e-7 nats")
    for axes in (curves, differences):
        axes.set_xlabel("update")
        axes.grid(alpha=0.3)
    curves.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
