"""The flags of tensor2tensor's commands, and what became of each.

Source: tensor2tensor 1.0 to 1.15: `utils/flags.py`, `bin/t2t_*.py`,
`serving/export.py`. `--help` of the old commands shows these tables. Flags without `to`
that are neither dropped nor refused are read by `command_main.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from t2t_repro.errors import UsageError
from t2t_repro.features.tensor2tensor.command_flags import (
    by_name,
    dropped,
    passed,
    read,
    read_flags,
    refused,
)
from t2t_repro.features.tensor2tensor.command_line import REMEMBERED

CLUSTER = (
    "TF_CONFIG or `t2t train --cluster slurm` describes several machines, without "
    "parameter servers (docs/operations.md)"
)
NO_TPU = "TPUs are not supported; the command runs on this machine's GPUs or CPU"
NO_TUNER = "there is no tuner: train one run per set of --hparams and compare them"
ALL_GPUS = "not needed: training uses all visible GPUs; CUDA_VISIBLE_DEVICES hides some"
NOT_NEEDED = "not needed"
NO_PROFILER = "there is no profiler or debugger; TensorBoard shows steps per second"
WHOLE_RUN = (
    "--early_stopping_patience counts evaluations without a higher score; "
    "`--checkpoint_path best` is the best step"
)

NAMES = (
    read("problem", "", "problem"),
    read("problems", "the name of --problem before version 1.6", "problem"),
    passed("model"),
    read("hparams_set", "", "hparams_set", "hparams"),
    read("hparams", "", "hparams"),
    passed("data_dir", path=True),
    passed("output_dir", path=True),
    passed("t2t_usr_dir", path=True),
)
SEARCH = (
    read("decode_hparams", "", "decode_hparams"),
    read("decode_beam_size", "beam_size=N", "decode_hparams"),
    read("decode_alpha", "alpha=X", "decode_hparams"),
    read("decode_extra_length", "extra_length=N", "decode_hparams"),
    read("decode_return_beams", "return_beams", "decode_hparams", boolean=True),
    passed("decode_from_file", path=True),
    passed("decode_to_file", "decode_to_file", "scores_to_file", path=True),
    read(
        "decode_interactive",
        "`t2t decode` reads standard input",
        "decode_from_file",
        boolean=True,
    ),
)
TRAINING = (
    passed("tmp_dir", path=True),
    passed("train_steps", answer="250000 if not given, as in tensor2tensor"),
    passed("random_seed"),
    passed(
        "local_eval_frequency",
        "local_eval_frequency",
        "save_checkpoints_steps",
        answer="evaluates and saves at these steps, as in tensor2tensor",
    ),
    passed("save_checkpoints_secs"),
    passed("keep_checkpoint_max"),
    passed("log_step_count_steps"),
    read("registry_help", "`t2t list`", boolean=True),
    *dropped(
        "not needed: `t2t train` trains, evaluates and saves; evaluate runs `t2t "
        "evaluate`",
        "schedule",
    ),
    read(
        "eval_use_test_set",
        "`t2t evaluate --split test`; training evaluates on dev",
        "split",
        boolean=True,
    ),
    *dropped(
        "not needed: `t2t train` prepares the data that --data_dir lacks",
        "generate_data",
        boolean=True,
    ),
    *dropped(
        "not needed: an evaluation reads the whole dev split; `t2t train "
        "--eval_sentences N` limits the sentences that are translated for BLEU",
        "eval_steps",
    ),
    *dropped(
        "not needed: --local_eval_frequency alone decides", "eval_throttle_seconds"
    ),
    *dropped(
        "not needed: BLEU is always that of decoded text",
        "eval_run_autoregressive",
        boolean=True,
    ),
    *dropped(
        WHOLE_RUN,
        "eval_early_stopping_steps eval_early_stopping_metric "
        "eval_early_stopping_metric_delta",
    ),
    *dropped(WHOLE_RUN, "eval_early_stopping_metric_minimize", boolean=True),
    *dropped(
        "--keep_checkpoint_max alone decides; `best` and `averaged` are kept besides",
        "keep_checkpoint_every_n_hours",
    ),
    passed("warm_start_from", path=True),
    *refused(NO_TUNER, "hparams_range autotune_objective"),
    *refused(NO_TUNER, "autotune", boolean=True),
    *dropped(NO_TUNER, "autotune_max_trials autotune_parallel_trials"),
    *dropped(NO_TUNER, "autotune_maximize", boolean=True),
    *dropped("`t2t export` does this", "export_saved_model", boolean=True),
)
DEVICES = (
    *dropped(ALL_GPUS, "worker_gpu gpu_order"),
    *dropped(
        "not needed: TensorFlow manages the memory of GPUs",
        "worker_gpu_memory_fraction",
    ),
    *dropped(
        "TensorFlow's variable TF_FORCE_GPU_ALLOW_GROWTH=true does this",
        "allow_growth",
        boolean=True,
    ),
    *dropped(
        "`t2t train --cpu_replicas N` tries data parallelism on a CPU",
        "locally_shard_to_cpu",
        boolean=True,
    ),
    *refused(CLUSTER, "worker_replicas", harmless=("0", "1")),
    *refused(CLUSTER, "worker_id ps_replicas", harmless=("0",)),
    *refused(CLUSTER, "master"),
    *dropped(CLUSTER, "worker_job ps_job ps_gpu std_server_protocol"),
    *dropped(
        "not needed: replicas are always synchronised after each step",
        "sync optionally_use_dist_strat",
        boolean=True,
    ),
    *dropped(
        NO_TPU,
        "use_tpu use_tpu_estimator cloud_tpu cloud_delete_on_done "
        "cloud_skip_confirmation tpu_replicate_model",
        boolean=True,
    ),
    *dropped(
        NO_TPU,
        "tpu_num_shards tpu_infeed_sleep_secs iterations_per_loop "
        "cloud_tpu_name cloud_vm_name",
    ),
    *refused(
        "jobs are not sent to Google Cloud; run the `t2t` command there",
        "cloud_mlengine",
        boolean=True,
    ),
    *refused(
        "jobs are not sent to Google Cloud; run the `t2t` command there",
        "cloud_mlengine_master_type job_dir",
    ),
    *dropped(
        "`t2t train --xla on|fusible|off|auto` compiles; by default it does where it "
        "helps",
        "xla_compile enable_graph_rewriter experimental_optimize_placement "
        "disable_grappler_optimizations",
        boolean=True,
    ),
    *dropped("`t2t train --xla on|fusible|off|auto` compiles", "xla_jit_level"),
    *dropped(
        "`--hparams activation_dtype=bfloat16` or float16 does this",
        "gpu_automatic_mixed_precision",
        boolean=True,
    ),
    *dropped(
        "not needed: the commands choose the threads",
        "inter_op_parallelism_threads intra_op_parallelism_threads",
    ),
    *dropped(
        NO_PROFILER,
        "tfdbg dbgprofile profile log_device_placement",
        boolean=True,
    ),
    *dropped(
        "not needed: messages go to standard error",
        "alsologtostderr logtostderr",
        boolean=True,
    ),
    *dropped(
        "not needed: messages go to standard error",
        "verbosity v stderrthreshold log_dir",
    ),
)
DECODING = (
    passed("checkpoint_path", path=True),
    passed("t2t_usr_dir", path=True),
    *dropped(
        "not needed: the time of the translations is that of their writing",
        "keep_timestamp",
        boolean=True,
    ),
    *dropped(NOT_NEEDED, "decode_in_memory", boolean=True),
    *dropped(
        "`t2t-bleu --translation F --reference G` scores the translations",
        "decode_reference",
    ),
    *refused(
        "one process decodes a whole file; `split` cuts it for several machines",
        "decode_shards",
        harmless=("1",),
    ),
    read(
        "score_file",
        "`t2t score` reads each side from its own file",
        "source",
        "target",
        path=True,
    ),
)

# --schedule of t2t-trainer: a method of `utils/trainer_lib.py: T2TExperiment`.
TRAINING_SCHEDULES = (
    "train",
    "train_and_evaluate",
    "continuous_train_and_eval",
    "train_eval_and_decode",
)
EVALUATING_SCHEDULES = ("evaluate", "continuous_eval")

COMMANDS = {
    "t2t-trainer": by_name(NAMES, SEARCH, TRAINING, DEVICES),
    "t2t-datagen": by_name(
        (
            read("problem", "", "problem"),
            passed("data_dir", path=True),
            passed("tmp_dir", path=True),
            passed("t2t_usr_dir", path=True),
            passed("num_shards"),
            passed("random_seed", "shuffle_seed"),
            passed("num_concurrent_processes", "num_workers"),
            read("only_list", "`t2t list problems`", boolean=True),
            *refused("one problem is prepared at a time", "exclude_problems"),
            *refused(
                "all pairs are prepared; cut the text files of --problem text_pairs",
                "max_cases",
                harmless=("0",),
            ),
            *refused(
                "one command prepares all shards",
                "task_id task_id_start task_id_end",
                harmless=("-1",),
            ),
            *refused(
                "give the trees to `t2t datagen --problem parsing_ptb --train_trees "
                "FILE --dev_trees FILE`",
                "parsing_path",
            ),
            *refused("there are no speech problems", "timit_paths"),
        )
    ),
    "t2t-decoder": by_name(NAMES, SEARCH, TRAINING, DEVICES, DECODING),
    "t2t-exporter": by_name(
        NAMES,
        SEARCH,
        TRAINING,
        DEVICES,
        DECODING,
        (
            passed("export_dir", path=True, answer="OUTPUT_DIR/export if not given"),
            *dropped(
                "not needed: a SavedModel is written in binary form",
                "as_text",
                boolean=True,
            ),
            *refused(
                "TensorFlow Hub's module format of TensorFlow 1 is not written; "
                "`tf.saved_model.load` and TensorFlow Hub's `hub.load` read the "
                "SavedModel",
                "export_as_tfhub",
                boolean=True,
            ),
        ),
    ),
    "t2t-avg-all": by_name(
        (
            passed("model_dir", "output_dir", path=True),
            passed("n", "last", answer="8 if not given, as in tensor2tensor"),
            *dropped(
                "the average is in MODEL_DIR/averaged, which `t2t decode --output_dir "
                "MODEL_DIR` uses by itself",
                "output_dir",
            ),
            *refused(
                "the last checkpoints are averaged, whatever their steps",
                "min_steps",
                harmless=("0",),
            ),
            *dropped("not needed: `t2t train` averages at its end", "wait_minutes"),
        )
    ),
    "t2t-translate-all": by_name(
        (
            passed("model_dir", "output_dir", path=True),
            passed("source", "decode_from_file", path=True),
            read(
                "translations_dir",
                "TRANSLATIONS_DIR/PROBLEM-STEP, one file per checkpoint",
                "decode_to_file",
                path=True,
            ),
            read("problem", "first part of the names of the files"),
            read("beam_size", "4 if not given, as in tensor2tensor", "decode_hparams"),
            read("alpha", "0.6 if not given, as in tensor2tensor", "decode_hparams"),
            passed("t2t_usr_dir", path=True),
            read("min_steps", "checkpoints of earlier steps are left out"),
            *dropped(REMEMBERED, "model hparams_set hparams data_dir"),
            *dropped("not needed: the name of --model_dir", "output_dir"),
            *dropped("the checkpoints that exist now are translated", "wait_minutes"),
            *refused(
                "one process translates with all checkpoints; it prints the `t2t "
                "decode` command of each",
                "decoder_command",
                harmless=("t2t-decoder {params}",),
            ),
        )
    ),
    "t2t-bleu": by_name(
        (
            read("translation", "file to score", path=True),
            read("reference", "reference translation", path=True),
            read("translations_dir", "scores every file named *-STEP", path=True),
            read("event_dir", "writes TensorBoard events there", path=True),
            read("bleu_variant", "uncased, cased or both"),
            read("tag_suffix", "end of the tags in TensorBoard"),
            read("min_steps", "files of earlier steps are left out"),
            *dropped("not needed: BLEU does not read it", "source"),
            *dropped("the files that exist now are scored", "wait_minutes"),
            *dropped(
                "no score of zero is written at step 0", "report_zero", boolean=True
            ),
        )
    ),
}

# `t2t` commands that a command of tensor2tensor runs.
TARGETS = {
    "t2t-trainer": ("train", "list", "evaluate", "decode"),
    "t2t-datagen": ("datagen", "list"),
    "t2t-decoder": ("decode", "evaluate", "score"),
    "t2t-exporter": ("export",),
    "t2t-avg-all": ("average",),
    "t2t-translate-all": ("decode",),
    "t2t-bleu": (),
}

SUMMARIES = {
    "t2t-trainer": "Runs `t2t train`; with --registry_help `t2t list`, with "
    "--schedule=evaluate `t2t evaluate`.",
    "t2t-datagen": "Runs `t2t datagen`; with --only_list `t2t list problems`.",
    "t2t-decoder": "Runs `t2t decode`; with --score_file `t2t score`; without a file "
    "or --decode_interactive `t2t evaluate`, which also decodes a split.",
    "t2t-exporter": "Runs `t2t export`.",
    "t2t-avg-all": "Runs `t2t average`.",
    "t2t-translate-all": "Runs `t2t decode` once per checkpoint.",
    "t2t-bleu": "Prints tensor2tensor's BLEU, which is sacreBLEU's with the tokenizer "
    "intl.",
}


def given_flags(old_command: str, arguments: Sequence[str]) -> dict[str, str]:
    """Return the flags of a command of tensor2tensor, with "~" replaced in paths.

    Raises:
        UsageError: If a flag is unknown, or asks for what `t2t` does not do.
    """
    known = COMMANDS[old_command]
    given = read_flags(
        arguments, known, f"`{old_command} --help` shows what became of every flag."
    )
    for name, value in given.items():
        flag = known[name]
        if flag.kind == "refused" and value not in flag.harmless:
            raise UsageError(f"--{name}={value}: {flag.answer}.")
        if flag.path and value:
            # The shell leaves "~" as it is after "=".
            given[name] = str(Path(value).expanduser())
    return given
