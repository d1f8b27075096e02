"""Make t2t_package.json: what tensor2tensor makes of the package `t2t_package`.

Run with Python 3.7 and tensor2tensor (made with tensor2tensor 1.15.7, tensorflow 1.15.5
and protobuf 3.20.3)::

    python tests/golden/make_t2t_package.py

The file has the files of text that the problems read, the pairs of each split that the
shards hold, decoded, and the values of the hparams sets.
"""

import gzip
import json
import os
import shutil
import sys
import tempfile

import tensorflow.compat.v1 as tf
from tensor2tensor.utils import registry

HERE = os.path.dirname(os.path.abspath(__file__))
PROBLEMS = (
    "next_line",
    "own_files_tiny",
    "translate_own_corpora",
    "own_tokens",
    "own_letters",
)
SETS = ("transformer_own", "own_small", "own_second")
ENGLISH = ["A man sees number {}, and waves.".format(n) for n in range(40)]  # noqa: UP032
GERMAN = ["Ein Mann sieht Nummer {} und winkt.".format(n) for n in range(40)]  # noqa: UP032
FILES = {
    "lines.txt": [*ENGLISH[:20], "", "  odd\u2028line\u3000", "123", *ENGLISH[20:]],
    "inputs.train.txt": ["  " + ENGLISH[0], *ENGLISH[1:30], "left over"],
    "targets.train.txt": [GERMAN[0] + "\u3000", *GERMAN[1:30]],
    "inputs.eval.txt": ENGLISH[30:],
    "targets.eval.txt": GERMAN[30:],
    "a/s.en": [*ENGLISH[:9], "", "nine\u2028ten"],
    "a/t.de": [*GERMAN[:9], "leer", "neun zehn"],
    "b/s.en.gz": ENGLISH[9:20],
    "b/t.de.gz": GERMAN[9:20],
    "c/1.tsv": ["vier\t-\tfour", "no tab", "\t-\tempty"],
    "c/2.tsv": ["sechs\t-\tsix\tmore"],
    "d/s.en.sgm": ["<doc>", '<seg id="1"> a > b </seg>', "text", "</doc>"],
    "d/t.de.sgm": ["<doc>", '<seg id="1">c</seg>', "<seg>x</seg>", "</doc>"],
    "train.tsv": ["one two\teins zwei", "three\teins\tdrei", "no tab"],
    "eval.tsv": ["two  one\teins"],
}


def write_files(folder):
    for name, lines in FILES.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        opened = gzip.open if name.endswith(".gz") else open
        with opened(path, "wt", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))
    for archive in ("a.tgz", "b.tgz", "c.tar", "d.tgz"):  # unpacked already
        with open(os.path.join(folder, archive), "w"):
            pass


def pairs_of(name, data_dir, tmp_dir):
    problem = registry.problem(name)
    problem.generate_data(data_dir, tmp_dir)
    encoders = problem.feature_encoders(data_dir)
    found = {}
    for file in sorted(os.listdir(data_dir)):
        if file.startswith(name + "-"):
            split = found.setdefault(file[len(name) + 1 :].split("-")[0], [])
            for record in tf.python_io.tf_record_iterator(os.path.join(data_dir, file)):
                feature = tf.train.Example.FromString(record).features.feature
                split.append(
                    [
                        encoders[side].decode(list(feature[side].int64_list.value[:-1]))
                        for side in ("inputs", "targets")
                    ]
                )
    return {split: sorted(pairs) for split, pairs in found.items()}


def main():
    sys.path.insert(0, HERE)
    __import__("t2t_package")
    folder = tempfile.mkdtemp()
    write_files(folder)
    made = {
        "files": FILES,
        "pairs": {
            name: pairs_of(name, tempfile.mkdtemp(dir=folder), folder)
            for name in PROBLEMS
        },
        "sets": {name: registry.hparams(name).values() for name in SETS},
    }
    shutil.rmtree(folder)
    with open(os.path.join(HERE, "t2t_package.json"), "w") as file:
        file.write(json.dumps(made, sort_keys=True) + "\n")


main()
