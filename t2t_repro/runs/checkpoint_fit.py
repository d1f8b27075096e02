"""Compare the size of a checkpoint with the model of its run before building that."""

from __future__ import annotations

from pathlib import Path

from t2t_repro.errors import UserError
from t2t_repro.models.sizes import parameter_count
from t2t_repro.runs.run import RUN_FILE, Run
from t2t_repro.text import Tokenizer
from t2t_repro.training.checkpoints import (
    DamagedCheckpointError,
    parameters_of_checkpoint,
)

# An attention of the user's package may have fewer parameters than are counted. What
# is left is compared when the weights are read.
_TOLERANCE = 2


def check_fits(
    run: Run,
    output_dir: str | Path,
    tokenizers: tuple[Tokenizer, Tokenizer],
    checkpoint: str,
) -> None:
    """Refuse a run whose description asks for a much larger model than it has.

    Building that model could take hours, or all memory.

    Args:
        run: Description of the run.
        output_dir: Folder of the run.
        tokenizers: Tokenizers of the run's inputs and targets.
        checkpoint: Path of the checkpoint.

    Raises:
        UserError: If the checkpoint is much smaller.
    """
    if run.model != "transformer":  # the parameters of others are not known
        return
    hparams = run.hparams
    source, target = tokenizers
    if source is not target:
        hparams = hparams.replace(shared_embedding_and_softmax_weights=False)
    described = parameter_count(hparams, source.vocab_size, target.vocab_size)
    try:
        stored = parameters_of_checkpoint(checkpoint)
    except DamagedCheckpointError:
        return  # `restore` says what to do, or an older checkpoint is read
    if described > _TOLERANCE * stored:
        resolved = hparams.resolved()
        raise UserError(
            f"{Path(output_dir) / RUN_FILE} describes a model of {described:,} "
            f"parameters ({resolved.num_encoder_layers} + "
            f"{resolved.num_decoder_layers} layers of width {resolved.hidden_size}), "
            f"and the checkpoint {checkpoint} has {stored:,}: one of the two is of "
            "another run.\nRestore it from a copy, or give another checkpoint."
        )
