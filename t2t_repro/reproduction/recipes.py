"""What is trained on what, for how long, and what is scored: one row of a table."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2t_repro.errors import UserError


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a row is trained and scored.

    Attributes:
        problem: Name of the problem.
        train_steps: Updates.
        splits: What is scored.
        hparams_set: Name of the set.
        hparams: Its changes, as `--hparams` takes them.
        average_last: Checkpoints averaged in the end; 0 = the last one is scored.
        checkpoints: The flag that says how far apart checkpoints are, and its value.
        text: Files by the flag of `t2t train` that takes them; none where the problem
            has its own. A result holds their checksums, to say what it is a result on.
        source: Where the files come from.
        vocab_size: Subwords; None = the problem's own number.
    """

    problem: str
    train_steps: int
    splits: tuple[str, ...]
    hparams_set: str = ""
    hparams: str = ""
    average_last: int = 0
    checkpoints: tuple[str, str] | None = None
    text: Mapping[str, str] = dataclasses.field(default_factory=dict)
    source: str = ""
    vocab_size: int | None = None

    def text_digests(self, folder: str | Path | None) -> dict[str, str]:
        """Find the text in a folder.

        Returns:
            File name to sha256.

        Raises:
            UserError: If a file is missing.
        """
        digests = {}
        for name in self.text.values():
            path = Path(folder or "") / name
            if not path.is_file():
                raise UserError(
                    f"received --text_dir {folder}, expected {self.source} in it "
                    f"({', '.join(self.text.values())}): {name} is missing."
                )
            digests[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        return digests

    def scores(self, evaluated: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
        """Take what is reported from what `t2t evaluate` printed for each split."""
        scores = {}
        for split, printed in evaluated.items():
            if "bleu" in printed:
                scores[f"BLEU ({split})"] = printed["bleu"]["value"]
            else:
                scores[f"F1 ({split})"] = printed["f1"]
                scores[f"F1 up to 40 words ({split})"] = printed["f1_up_to_40"]
                repaired = printed.get("repaired", 0) / printed["sentences"]
                scores[f"% repaired ({split})"] = 100 * repaired
        return scores
