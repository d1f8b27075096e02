"""Keep the weights of the best evaluations of a run."""

from __future__ import annotations

import json
import math
from pathlib import Path

import keras

from t2t_repro.files import atomic_write
from t2t_repro.training.checkpoint_paths import (
    BEST_MODELS_FOLDER,
    SCORES_FILE,
    all_checkpoints,
    recorded_scores,
    step_of,
)
from t2t_repro.training.checkpoints import (
    model_variables,
    remove_checkpoint,
    remove_partial_checkpoints,
    write_checkpoint,
)


class BestModels:
    """The weights with the highest scores, in the folder `best_models` of a run.

    A file of scores by step is written after the weights and before others are removed,
    so a process that is killed at any moment loses none of them. Offering the model of
    a step again, as a resumed run does, changes nothing.

    Args:
        output_dir: Folder of the run.
        model: The model.
        keep: Number of models to keep, at least 1.
    """

    def __init__(self, output_dir: str | Path, model: keras.Model, keep: int) -> None:
        self.output_dir = Path(output_dir)
        self.folder = self.output_dir / BEST_MODELS_FOLDER
        self._variables = model_variables(model)
        self._keep = keep

    def offer(self, step: int, score: float) -> bool:
        """Keep the model's weights if their score is among the highest.

        Of equal scores, the earlier one wins, as for the model "best". So does a higher
        score of the same step, which training that went back to a checkpoint left.

        Args:
            step: Number of completed updates.
            score: Score of the weights.

        Returns:
            Whether they are kept.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        before = recorded_scores(self.output_dir)
        if before.get(step, -math.inf) >= score:
            return True
        scores = before | {step: score}
        ranked = sorted(scores, key=lambda other: (-scores[other], other))
        kept = ranked[: self._keep]
        if step in kept:
            write_checkpoint(self._variables, self.folder, step)
        recorded = {str(other): scores[other] for other in sorted(kept)}
        atomic_write(self.folder / SCORES_FILE, json.dumps(recorded, indent=2) + "\n")
        self._remove_others(kept)
        return step in kept

    def _remove_others(self, kept: list[int]) -> None:
        remove_partial_checkpoints(self.folder)
        for path in all_checkpoints(self.folder):
            if step_of(path) not in kept:
                remove_checkpoint(path)
