"""Settings of a training run, except those of the model and its optimizer."""

from __future__ import annotations

from dataclasses import dataclass

from t2t_repro.constants import AUTO_TOKENIZER, BLEU_TOKENIZERS
from t2t_repro.settings.typed_settings import TypedSettings, setting

MAX_STEPS_BETWEEN_EVALUATIONS = 1000
# The paper's base model trained 100,000 steps in 12 hours with a checkpoint every 10
# minutes, so its last 5 checkpoints span 7 % of the training run (section 6.1).
CHECKPOINTS_PER_RUN = 100
MIN_STEPS_BETWEEN_CHECKPOINTS = 50
CHECKPOINTS_TO_AVERAGE = 5  # paper section 6.1, base models
MAX_SEED = 2**32 - 1  # NumPy's limit


@dataclass(frozen=True, kw_only=True)
class TrainSettings(TypedSettings):
    """Settings of a run: its model, folder, length and intervals.

    Field names are the flags of `t2t train`.
    """

    output_dir: str = setting("folder of the run")
    hparams_set: str = setting("registered hparams set; see `t2t list hparams`")
    hparams: str = setting('changes to the set, "name=value,name=value"', "")
    model: str = setting("registered model; see `t2t list models`", "transformer")
    random_seed: int = setting(
        "seed of weights, dropout and data order", 1, at_least=0, at_most=MAX_SEED
    )
    train_steps: int = setting(
        "updates at the end of training, including those before a resume",
        100_000,  # the paper's base model
        unit="steps",
        at_least=1,
    )
    log_step_count_steps: int = setting(
        "steps between two lines of metrics", 100, unit="steps", at_least=1
    )
    local_eval_frequency: int | None = setting(
        "steps between two evaluations; by default a third of train_steps, at most "
        f"{MAX_STEPS_BETWEEN_EVALUATIONS}",
        None,
        unit="steps",
        at_least=1,
    )
    eval_sentences: int = setting(
        "dev sentences to translate and score at each evaluation",
        500,
        unit="sentences",
        at_least=0,
    )
    bleu_tokenizer: str = setting(
        "sacreBLEU's tokenizer of BLEU; auto = by the target language if the problem "
        "knows it, or zh, ja-mecab or char for dev targets without spaces, else 13a",
        AUTO_TOKENIZER,
        choices=BLEU_TOKENIZERS,
    )
    attention_samples: int = setting(
        "dev sentences whose attention TensorBoard shows at each evaluation",
        3,
        unit="sentences",
        at_least=0,
    )
    save_checkpoints_steps: int | None = setting(
        "steps between two checkpoints, 0 = save by time alone; by default a hundredth "
        f"of train_steps, at least {MIN_STEPS_BETWEEN_CHECKPOINTS}, or 0 with "
        "save_checkpoints_secs",
        None,
        unit="steps",
        at_least=0,
    )
    save_checkpoints_secs: float = setting(
        "seconds between two checkpoints; 0 = save by steps alone",
        0.0,
        unit="seconds",
        at_least=0,
    )
    keep_checkpoint_max: int = setting(
        "number of newest checkpoints to keep; at least average_last",
        10,
        unit="checkpoints",
        at_least=1,
    )
    average_last: int = setting(
        "checkpoints to average after training; 0 or 1 = do not average",
        CHECKPOINTS_TO_AVERAGE,
        unit="checkpoints",
        at_least=0,
    )
    decode_hparams: str = setting(
        '"name=value,name=value", the search that scores the run after training, as '
        "for `t2t evaluate`; evaluations during training are greedy",
        "",
    )
    max_skipped_updates: int = setting(
        "updates in a row whose loss or gradient is not finite, or a spike, that are "
        "skipped before training goes back to a checkpoint; 0 = skip none",
        0,
        unit="updates",
        at_least=0,
    )
    spike_factor: float = setting(
        "multiple of its recent mean from which a loss or gradient norm counts as a "
        "spike; 0 = none does",
        0.0,
        at_least=0,
    )
    max_rollbacks: int = setting(
        "returns to one checkpoint before training gives up",
        3,
        unit="returns",
        at_least=0,
    )
    keep_best: int = setting(
        "models with the highest scores of the evaluations to keep, for `t2t average "
        "--best N`; the very best one is kept in any case",
        1,
        unit="models",
        at_least=1,
    )
    early_stopping_patience: int = setting(
        "evaluations in a row without a higher score after which training ends; 0 = "
        "never",
        0,
        unit="evaluations",
        at_least=0,
    )
    warm_start_from: str | None = setting(
        "run or checkpoint whose weights a new run begins with, where they fit", None
    )
    cpu_replicas: int = setting(
        "replicas on the CPU, to try data parallelism; 0 = one per GPU, or one on the "
        "CPU",
        0,
        unit="replicas",
        at_least=0,
        at_most=1000,
    )
    cluster: str = setting(
        "description of the machines of a training run: tf_config = the variable "
        "TF_CONFIG, one machine without it; slurm = the variables of Slurm",
        "tf_config",
        choices=("tf_config", "slurm"),
    )
    xla: str = setting(
        "whether XLA compiles the training step; fusible = all but matrix "
        "multiplications; auto = off if replicas share a CPU or the steps of a new run "
        "save a CPU less time than compilation takes, fusible for bfloat16 on a CPU "
        "with AMX or an AMD CPU with AVX-512 BF16, otherwise on",
        "auto",
        choices=("auto", "on", "fusible", "off"),
    )
    deterministic: bool = setting(
        "let GPUs compute the same numbers again, which is slower and which some "
        "operations refuse; a CPU always does",
        False,
    )
    try_largest_batch: str = setting(
        "whether a new run tries its largest batch first, to run out of memory at "
        "once; auto = on GPUs",
        "auto",
        choices=("auto", "on", "off"),
    )
    t2t_usr_dir: str | None = setting(
        "folder of a Python package that registers your problems, models and sets", None
    )

    @property
    def steps_between_evaluations(self) -> int:
        """Value of `local_eval_frequency` or, if it is None, the default."""
        if self.local_eval_frequency is not None:
            return self.local_eval_frequency
        return min(-(-self.train_steps // 3), MAX_STEPS_BETWEEN_EVALUATIONS)

    @property
    def steps_between_checkpoints(self) -> int:
        """Value of `save_checkpoints_steps` or, if it is None, the default."""
        if self.save_checkpoints_steps is not None:
            return self.save_checkpoints_steps
        if self.save_checkpoints_secs:
            return 0
        share = self.train_steps // CHECKPOINTS_PER_RUN
        return max(share, MIN_STEPS_BETWEEN_CHECKPOINTS)

    @property
    def checkpoints_to_keep(self) -> int:
        """Number of newest checkpoints to keep; enough for the average."""
        return max(self.keep_checkpoint_max, self.average_last)
