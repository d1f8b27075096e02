"""Flags that t2t-trainer, t2t-decoder and t2t-exporter share, and what became of each.

Source: tensor2tensor 1.0 to 1.15: `utils/flags.py`, `bin/t2t_*.py`,
`serving/export.py`. Flags without `to` that are neither dropped nor refused are read by
`translator.py`.
"""

from __future__ import annotations

from t2t_repro.features.tensor2tensor.flags import dropped, passed, read, refused

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
        "eval_early_stopping_steps",
        "eval_early_stopping_metric",
        "eval_early_stopping_metric_delta",
    ),
    *dropped(WHOLE_RUN, "eval_early_stopping_metric_minimize", boolean=True),
    *dropped(
        "--keep_checkpoint_max alone decides; `best` and `averaged` are kept besides",
        "keep_checkpoint_every_n_hours",
    ),
    passed("warm_start_from", path=True),
    *refused(NO_TUNER, "hparams_range", "autotune_objective"),
    *refused(NO_TUNER, "autotune", boolean=True),
    *dropped(NO_TUNER, "autotune_max_trials", "autotune_parallel_trials"),
    *dropped(NO_TUNER, "autotune_maximize", boolean=True),
    *dropped("`t2t export` does this", "export_saved_model", boolean=True),
)
DEVICES = (
    *dropped(ALL_GPUS, "worker_gpu", "gpu_order"),
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
    *refused(CLUSTER, "worker_id", "ps_replicas", harmless=("0",)),
    *refused(CLUSTER, "master"),
    *dropped(CLUSTER, "worker_job", "ps_job", "ps_gpu", "std_server_protocol"),
    *dropped(
        "not needed: replicas are always synchronised after each step",
        "sync",
        "optionally_use_dist_strat",
        boolean=True,
    ),
    *dropped(
        NO_TPU,
        "use_tpu",
        "use_tpu_estimator",
        "cloud_tpu",
        "cloud_delete_on_done",
        "cloud_skip_confirmation",
        "tpu_replicate_model",
        boolean=True,
    ),
    *dropped(
        NO_TPU,
        "tpu_num_shards",
        "tpu_infeed_sleep_secs",
        "iterations_per_loop",
        "cloud_tpu_name",
        "cloud_vm_name",
    ),
    *refused(
        "jobs are not sent to Google Cloud; run the `t2t` command there",
        "cloud_mlengine",
        boolean=True,
    ),
    *refused(
        "jobs are not sent to Google Cloud; run the `t2t` command there",
        "cloud_mlengine_master_type",
        "job_dir",
    ),
    *dropped(
        "`t2t train --xla on|fusible|off|auto` compiles; by default it does where it "
        "helps",
        "xla_compile",
        "enable_graph_rewriter",
        "experimental_optimize_placement",
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
        "inter_op_parallelism_threads",
        "intra_op_parallelism_threads",
    ),
    *dropped(
        NO_PROFILER,
        "tfdbg",
        "dbgprofile",
        "profile",
        "log_device_placement",
        boolean=True,
    ),
    *dropped(
        "not needed: messages go to standard error",
        "alsologtostderr",
        "logtostderr",
        boolean=True,
    ),
    *dropped(
        "not needed: messages go to standard error",
        "verbosity",
        "v",
        "stderrthreshold",
        "log_dir",
    ),
)
DECODER = (
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
