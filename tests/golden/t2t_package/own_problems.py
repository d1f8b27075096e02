"""Problems of every kind of text."""

# Rules are switched off for what tensor2tensor's users wrote for Python 2.
from __future__ import absolute_import, division, print_function  # noqa: UP010

import os
import re

import six
from tensor2tensor.data_generators import (
    generator_utils,
    problem,
    text_encoder,
    text_problems,
    translate,
)
from tensor2tensor.utils import metrics, registry

TRAIN = problem.DatasetSplit.TRAIN


@registry.register_problem
class NextLine(text_problems.Text2TextProblem):
    """One generator for all splits."""

    @property
    def approx_vocab_size(self):
        return 300

    @property
    def is_generate_per_split(self):
        return False

    @property
    def dataset_splits(self):
        return [
            {"split": TRAIN, "shards": 3},
            {"split": problem.DatasetSplit.EVAL, "shards": 1},
            {"split": problem.DatasetSplit.TEST, "shards": 1},
        ]

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        before = None
        for line in text_problems.txt_line_iterator(os.path.join(tmp_dir, "lines.txt")):
            line = re.sub("[^a-z0-9]+", " ", six.ensure_text(line).lower()).strip()
            if before and line:
                yield {"inputs": before, "targets": line}
            before = line


class SmallSplits(object):  # noqa: UP004
    """Two shards for training."""

    @property
    def dataset_splits(self):
        return [
            {"split": TRAIN, "shards": 2},
            {"split": problem.DatasetSplit.EVAL, "shards": 1},
        ]


@registry.register_problem("own_files_tiny")
class OwnFiles(SmallSplits, text_problems.Text2textTmpdir):
    @property
    def approx_vocab_size(self):
        return 300

    @property
    def inputs_prefix(self):
        return "to German: "


_CORPORA = [
    ["http://localhost/a.tgz", ("a/s.en", "a/t.de")],
    ["http://localhost/b.tgz", ("b/s.en.gz", "b/t.de.gz")],
    ["http://localhost/c.tar", ("tsv", 2, 0, "c/*.tsv")],
]
_DEV = [["http://localhost/d.tgz", ("d/s.en.sgm", "d/t.de.sgm")]]


@registry.register_problem
class TranslateOwnCorpora(SmallSplits, translate.TranslateProblem):
    """Corpora in several forms, a vocabulary for each side."""

    def source_data_files(self, dataset_split):
        return _CORPORA if dataset_split == TRAIN else _DEV

    def _vocabulary(self, data_dir, tmp_dir, side):
        return generator_utils.get_or_generate_vocab(
            data_dir,
            tmp_dir,
            "vocab.own_corpora.{}".format(side),  # noqa: UP032
            300,
            [[item[0], [item[1][side]]] for item in _CORPORA[:2]],
            max_subtoken_length=self.max_subtoken_length,
        )

    def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
        return text_problems.text2text_generate_encoded(
            self.generate_samples(data_dir, tmp_dir, dataset_split),
            self._vocabulary(data_dir, tmp_dir, 0),
            self._vocabulary(data_dir, tmp_dir, 1),
        )

    def feature_encoders(self, data_dir):
        names = ("inputs", "targets")
        path = os.path.join(data_dir, "vocab.own_corpora.{}")
        return {
            name: text_encoder.SubwordTextEncoder(path.format(side))
            for side, name in enumerate(names)
        }


@registry.register_problem
class OwnTokens(SmallSplits, text_problems.Text2TextProblem):
    """Tokens of a file that the package makes."""

    @property
    def vocab_type(self):
        return text_problems.VocabType.TOKEN

    @property
    def oov_token(self):
        return "UNK"

    def is_generate_per_split(self):
        return True

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        path = os.path.join(data_dir, self.vocab_filename)
        if not os.path.exists(path):
            words = ["UNK", "one", "two", "eins"]
            encoder = text_encoder.TokenTextEncoder(None, vocab_list=words)
            encoder.store_to_file(path)
        return text_problems.text2text_txt_tab_iterator(
            os.path.join(tmp_dir, "{}.tsv".format(dataset_split))  # noqa: UP032
        )


@registry.register_problem
class OwnLetters(SmallSplits, text_problems.Text2TextProblem):
    """Bytes."""

    @property
    def vocab_type(self):
        return text_problems.VocabType.CHARACTER

    @property
    def is_generate_per_split(self):
        return True

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        for word in (dataset_split, "é\t\U0001f40d", " 漢"):
            yield {"inputs": word, "targets": word[::-1]}

    def eval_metrics(self):
        return [metrics.Metrics.ACC]
