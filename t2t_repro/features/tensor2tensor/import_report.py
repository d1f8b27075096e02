"""The request and the report of an import from tensor2tensor."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

from t2t_repro.features.tensor2tensor.forward_check import Comparison
from t2t_repro.features.tensor2tensor.hparams_translation import TranslatedHParams
from t2t_repro.features.tensor2tensor.old_checkpoint import OldCheckpoint
from t2t_repro.features.tensor2tensor.old_settings import OldSettings
from t2t_repro.features.tensor2tensor.vocabulary_files import Vocabularies
from t2t_repro.text_tables import quantity


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImportRequest:
    """A model to import, with settings that its folder may lack.

    Attributes:
        model: Folder that `t2t-trainer` or `t2t-avg-all` wrote, or one checkpoint.
        checkpoint_path: Checkpoint to use instead of the folder's newest.
        data_dir: Folder of the data, with the vocabulary.
        t2t_usr_dir: Package with the problem and the set.
        problem: Problem that the model was trained on.
        hparams_set: Set that it was trained with; needed without `hparams.json`.
        hparams: Changes to its settings, "name=value,name=value", in the names of
            tensor2tensor.
        source_vocab: Vocabulary file of the inputs, instead of one of `data_dir`.
        target_vocab: Vocabulary file of the targets, if both sides have their own.
        target_space_id: Row of the target spaces; by default the one that was trained.
    """

    model: str | Path
    checkpoint_path: str | None = None
    data_dir: str | None = None
    t2t_usr_dir: str | None = None
    problem: str | None = None
    hparams_set: str | None = None
    hparams: str = ""
    source_vocab: str | None = None
    target_vocab: str | None = None
    target_space_id: int | None = None


@dataclasses.dataclass(frozen=True)
class ImportReport:
    """The parts of an imported model, and how exact it is.

    Attributes:
        checkpoint: The checkpoint.
        settings: Its settings.
        vocabularies: Its tokenizers.
        translated: Its hparams here.
        used: Number of the model's variables that are used.
        unused: Names of variables that are not used.
        target_space: Which row of the target spaces, and why; empty without any.
        data: The data that training goes on with, or why there is none.
        training: What of the optimizer is used, or why nothing is.
        comparison: The comparison of logits.
    """

    checkpoint: OldCheckpoint
    settings: OldSettings
    vocabularies: Vocabularies
    translated: TranslatedHParams
    used: int
    unused: tuple[str, ...]
    target_space: str
    data: str
    training: str
    comparison: Comparison

    def lines(self) -> Iterator[str]:
        """Yield the report in lines of text."""
        yield f"checkpoint: {self.checkpoint.path}"
        yield f"settings: {self.settings.origin}"
        yield f"vocabulary: {', '.join(self.vocabularies.names)}"
        changes = self.translated.hparams.replace(",", ", ") or "no changes"
        yield f"hparams: {self.translated.hparams_set} with {changes}"
        yield f"variables: {self.used} of the model are used"
        if self.target_space:
            yield f"target space: {self.target_space}"
        yield f"optimizer: {self.training}"
        yield f"data: {self.data}"
        if self.unused:
            yield f"not used: {', '.join(_grouped(self.unused))}"
        for note in self.translated.notes:
            yield f"training differs: {note}"
        compared = self.comparison
        yield (
            f"largest difference of logits: {compared.largest:.1e} on "
            f"{quantity(compared.pairs, 'pair')} {compared.origin} "
            f"(limit {compared.limit:.0e})"
        )


def _grouped(names: tuple[str, ...]) -> list[str]:
    """Name variables once for all layers and shards, with their number."""
    groups: dict[str, int] = {}
    for name in names:
        group = re.sub(r"(?<=[_/])\d+(?=/|$)", "*", name)
        groups[group] = groups.get(group, 0) + 1
    return [n if count == 1 else f"{n} ({count})" for n, count in groups.items()]
