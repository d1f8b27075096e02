"""The flags of tensor2tensor's commands, and what became of each.

Source: tensor2tensor 1.0 to 1.15: `utils/flags.py`, `bin/t2t_*.py`,
`serving/export.py`. `--help` of the old commands shows these tables.
"""

from __future__ import annotations

from t2t_repro.features.tensor2tensor.flags import (
    by_name,
    dropped,
    passed,
    read,
    refused,
)
from t2t_repro.features.tensor2tensor.shared_flags import (
    DECODER as _DECODER,
)
from t2t_repro.features.tensor2tensor.shared_flags import (
    DEVICES,
    NAMES,
    SEARCH,
    TRAINING,
)
from t2t_repro.features.tensor2tensor.translation import REMEMBERED

TRAINER = by_name(NAMES, SEARCH, TRAINING, DEVICES)
DECODER = by_name(NAMES, SEARCH, TRAINING, DEVICES, _DECODER)
EXPORTER = by_name(
    NAMES,
    SEARCH,
    TRAINING,
    DEVICES,
    _DECODER,
    (
        passed("export_dir", path=True, answer="OUTPUT_DIR/export if not given"),
        *dropped(
            "not needed: a SavedModel is written in binary form",
            "as_text",
            boolean=True,
        ),
        *refused(
            "TensorFlow Hub's module format of TensorFlow 1 is not written; "
            "`tf.saved_model.load` and TensorFlow Hub's `hub.load` read the SavedModel",
            "export_as_tfhub",
            boolean=True,
        ),
    ),
)
DATAGEN = by_name(
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
            "task_id",
            "task_id_start",
            "task_id_end",
            harmless=("-1",),
        ),
        *refused(
            "give the trees to `t2t datagen --problem parsing_ptb --train_trees FILE "
            "--dev_trees FILE`",
            "parsing_path",
        ),
        *refused("there are no speech problems", "timit_paths"),
    )
)
AVG_ALL = by_name(
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
)
TRANSLATE_ALL = by_name(
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
        *dropped(REMEMBERED, "model", "hparams_set", "hparams", "data_dir"),
        *dropped("not needed: the name of --model_dir", "output_dir"),
        *dropped("the checkpoints that exist now are translated", "wait_minutes"),
        *refused(
            "one process translates with all checkpoints; it prints the `t2t decode` "
            "command of each",
            "decoder_command",
            harmless=("t2t-decoder {params}",),
        ),
    )
)
BLEU = by_name(
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
        *dropped("no score of zero is written at step 0", "report_zero", boolean=True),
    )
)

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
COMMANDS = {
    "t2t-trainer": TRAINER,
    "t2t-datagen": DATAGEN,
    "t2t-decoder": DECODER,
    "t2t-exporter": EXPORTER,
    "t2t-avg-all": AVG_ALL,
    "t2t-translate-all": TRANSLATE_ALL,
    "t2t-bleu": BLEU,
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
