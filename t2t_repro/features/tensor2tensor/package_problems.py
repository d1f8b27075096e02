"""tensor2tensor's problems of text, as the base classes of a package's own.

Source: tensor2tensor 1.15.7, data_generators/problem.py, text_problems.py and
translate.py.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from t2t_repro.features.tensor2tensor.package_encoders import (
    RESERVED_TOKENS,
    ByteTextEncoder,
    SubwordTextEncoder,
    TextEncoder,
    TokenTextEncoder,
    get_or_generate_vocab_inner,
)
from t2t_repro.features.tensor2tensor.package_texts import (
    Sample,
    compile_data,
    lines_for_vocab,
    text2text_distill_iterator,
    text2text_txt_iterator,
    txt_line_iterator,
)


class DatasetSplit:
    """Names of the splits."""

    TRAIN = "train"
    EVAL = "eval"
    TEST = "test"


class VocabType:
    """Kinds of vocabularies."""

    CHARACTER = "character"
    SUBWORD = "subwords"
    TOKEN = "tokens"


class PackageBase:
    """`problem.Problem`: the base of all problems of tensor2tensor.

    Args:
        was_reversed: Whether the sides are swapped when shards are read.
        was_copy: Whether the targets are the inputs.
    """

    name = ""
    packed_length: int | None = None
    multiprocess_generate = False
    batch_size_means_tokens = False

    def __init__(self, was_reversed: bool = False, was_copy: bool = False) -> None:
        self._was_reversed = was_reversed
        self._was_copy = was_copy

    @property
    def was_reversed(self) -> bool:
        """Whether the sides are swapped."""
        return self._was_reversed

    def dataset_filename(self) -> str:
        """Return the beginning of the names of the shards."""
        return self.name

    def _filepaths(
        self, split: str, data_dir: str, num_shards: int, shuffled: bool
    ) -> list[str]:
        """Return the paths of the shards of a split."""
        suffix = "" if shuffled else "-unshuffled"
        beginning = f"{self.dataset_filename()}{suffix}-{split}"
        return [
            os.path.join(data_dir, f"{beginning}-{shard:05d}-of-{num_shards:05d}")
            for shard in range(num_shards)
        ]

    training_filepaths = functools.partialmethod(_filepaths, "train")
    dev_filepaths = functools.partialmethod(_filepaths, "dev")
    test_filepaths = functools.partialmethod(_filepaths, "test")


class Text2TextProblem(PackageBase):
    """`text_problems.Text2TextProblem`: pairs of text."""

    # The feature that the model learns to write.
    learned_feature = "targets"

    # Whether `generate_samples` is called for each split, or once for all.
    is_generate_per_split: Any = None
    vocab_type: str = VocabType.SUBWORD
    approx_vocab_size: int = 2**15
    additional_reserved_tokens: Sequence[str] = ()
    oov_token: str | None = None
    max_samples_for_vocab: int | None = None
    max_subtoken_length: int | None = 200
    has_inputs = True
    batch_size_means_tokens = True
    already_shuffled = False
    inputs_prefix = ""
    targets_prefix = ""
    use_vocab_from_other_problem: Text2TextProblem | None = None

    @property
    def dataset_splits(self) -> list[dict[str, Any]]:
        """The splits, each with its number of shards."""
        return [
            {"split": DatasetSplit.TRAIN, "shards": 100},
            {"split": DatasetSplit.EVAL, "shards": 1},
        ]

    def generate_samples(
        self, data_dir: str, tmp_dir: str, dataset_split: str
    ) -> Iterable[dict[str, Any]]:
        """Yield the texts "inputs" and "targets" of each pair."""
        raise NotImplementedError

    @property
    def vocab_filename(self) -> str:
        """Name of the vocabulary's file in `data_dir`."""
        if self.use_vocab_from_other_problem:
            return self.use_vocab_from_other_problem.vocab_filename
        name = self.dataset_filename()
        if self.vocab_type == VocabType.SUBWORD:
            return f"vocab.{name}.{self.approx_vocab_size}.{VocabType.SUBWORD}"
        return f"vocab.{name}.{VocabType.TOKEN}"

    def generate_text_for_vocab(self, data_dir: str, tmp_dir: str) -> Iterator[str]:
        """Yield the lines that the vocabulary is learned from."""
        samples = self.generate_samples(data_dir, tmp_dir, DatasetSplit.TRAIN)
        for number, sample in enumerate(samples, start=1):
            yield sample["inputs"]
            yield sample["targets"]
            if self.max_samples_for_vocab and number >= self.max_samples_for_vocab:
                break

    def get_or_create_vocab(
        self, data_dir: str, tmp_dir: str | None, force_get: bool = False
    ) -> TextEncoder:
        """Return the encoder of both sides.

        Args:
            data_dir: Folder of the vocabulary's file.
            tmp_dir: Folder of the text.
            force_get: Whether the file must be there.
        """
        path = os.path.join(data_dir, self.vocab_filename)
        if self.vocab_type == VocabType.CHARACTER:
            return ByteTextEncoder()
        if self.vocab_type == VocabType.TOKEN:
            return TokenTextEncoder(path, replace_oov=self.oov_token)
        if self.vocab_type != VocabType.SUBWORD:
            raise ValueError(f"Unrecognized VocabType: {self.vocab_type}")
        if force_get:
            return SubwordTextEncoder(path)
        if self.use_vocab_from_other_problem:
            return self.use_vocab_from_other_problem.get_or_create_vocab(
                data_dir, tmp_dir
            )
        return get_or_generate_vocab_inner(
            data_dir,
            self.vocab_filename,
            self.approx_vocab_size,
            self.generate_text_for_vocab(data_dir, str(tmp_dir)),
            reserved_tokens=[*RESERVED_TOKENS, *self.additional_reserved_tokens],
        )

    def feature_encoders(self, data_dir: str) -> dict[str, TextEncoder]:
        """Return the encoder of each side, whose files are there."""
        encoder = self.get_or_create_vocab(data_dir, None, force_get=True)
        return {"inputs": encoder, "targets": encoder}

    def generate_encoded_samples(
        self, data_dir: str, tmp_dir: str, dataset_split: str
    ) -> Iterable[dict[str, Any]]:
        """Yield the pairs of a split, encoded."""
        samples = self.generate_samples(data_dir, tmp_dir, dataset_split)
        encoder = self.get_or_create_vocab(data_dir, tmp_dir)
        return text2text_generate_encoded(
            samples,
            encoder,
            inputs_prefix=self.inputs_prefix,
            targets_prefix=self.targets_prefix,
        )


def text2text_generate_encoded(
    sample_generator: Iterable[dict[str, Any]],
    vocab: TextEncoder,
    targets_vocab: TextEncoder | None = None,
    has_inputs: bool = True,
    inputs_prefix: str = "",
    targets_prefix: str = "",
) -> Iterator[dict[str, Any]]:
    """Yield samples with the ids of both sides, as `text_problems.py` does."""
    del has_inputs
    for sample in sample_generator:
        inputs = vocab.encode(inputs_prefix + sample["inputs"])
        targets = (targets_vocab or vocab).encode(targets_prefix + sample["targets"])
        yield {**sample, "inputs": inputs, "targets": targets}


class Text2textTmpdir(Text2TextProblem):
    """`text_problems.Text2textTmpdir`: files of lines in `tmp_dir`."""

    TRAIN_FILES = ("inputs.train.txt", "targets.train.txt")
    EVAL_FILES = ("inputs.eval.txt", "targets.eval.txt")
    is_generate_per_split = True
    _tmp_dir_override: str | None = None

    def generate_samples(
        self, data_dir: str, tmp_dir: str, dataset_split: str
    ) -> Iterable[Sample]:
        del data_dir
        is_training = dataset_split == DatasetSplit.TRAIN
        names = self.TRAIN_FILES if is_training else self.EVAL_FILES
        folder = self._tmp_dir_override or tmp_dir
        return text2text_txt_iterator(*(os.path.join(folder, name) for name in names))


class Text2textTmpdirTokens(Text2textTmpdir):
    """`text_problems.Text2textTmpdirTokens`: its tokens are in `vocab.txt`."""

    vocab_type = VocabType.TOKEN
    oov_token = "<UNK>"

    def generate_samples(
        self, data_dir: str, tmp_dir: str, dataset_split: str
    ) -> Iterable[Sample]:
        path = os.path.join(data_dir, self.vocab_filename)
        if not os.path.exists(path):
            tokens = txt_line_iterator(os.path.join(tmp_dir, "vocab.txt"))
            vocabulary = [str(self.oov_token), *tokens]
            TokenTextEncoder(None, vocab_list=vocabulary).store_to_file(path)
        return super().generate_samples(data_dir, tmp_dir, dataset_split)


class TranslateProblem(Text2TextProblem):
    """`translate.TranslateProblem`: parallel corpora in `tmp_dir`."""

    is_generate_per_split = True
    datatypes_to_clean: Sequence[str] | None = None

    def source_data_files(self, dataset_split: str) -> Any:
        """Return each corpus of a split: its archive, and its two files."""
        raise NotImplementedError

    def vocab_data_files(self) -> Any:
        """Return the corpora that the vocabulary is learned from."""
        return self.source_data_files(DatasetSplit.TRAIN)

    def generate_samples(
        self,
        data_dir: str,
        tmp_dir: str,
        dataset_split: str,
        custom_iterator: Callable[
            [str, str], Iterable[Sample]
        ] = text2text_txt_iterator,
    ) -> Iterable[Sample]:
        del data_dir
        is_training = dataset_split == DatasetSplit.TRAIN
        compiled = compile_data(
            tmp_dir,
            self.source_data_files(dataset_split),
            f"{self.name}-compiled-{'train' if is_training else 'dev'}",
            datatypes_to_clean=self.datatypes_to_clean if is_training else None,
        )
        return custom_iterator(f"{compiled}.lang1", f"{compiled}.lang2")

    def generate_text_for_vocab(self, data_dir: str, tmp_dir: str) -> Iterator[str]:
        del data_dir
        return lines_for_vocab(tmp_dir, self.vocab_data_files())


class TranslateDistillProblem(TranslateProblem):
    """`translate.TranslateDistillProblem`: the targets are a teacher's outputs.

    Its vocabulary is the teacher's, whose file is in `data_dir`.
    """

    learned_feature = "dist_targets"

    def get_or_create_vocab(
        self, data_dir: str, tmp_dir: str | None, force_get: bool = False
    ) -> TextEncoder:
        del tmp_dir, force_get
        return SubwordTextEncoder(os.path.join(data_dir, self.vocab_filename))

    def generate_encoded_samples(
        self, data_dir: str, tmp_dir: str, dataset_split: str
    ) -> Iterator[dict[str, Any]]:
        encoder = self.get_or_create_vocab(data_dir, tmp_dir)
        for sample in self.generate_samples(data_dir, tmp_dir, dataset_split):
            yield {name: encoder.encode(text) for name, text in sample.items()}

    def generate_samples(
        self, data_dir: str, tmp_dir: str, dataset_split: str, *_: Any
    ) -> Iterable[Sample]:
        del data_dir, tmp_dir
        path = self.source_data_files(dataset_split)
        names = ("inputs", "gold", "prediction")
        return text2text_distill_iterator(*(f"{path}{name}" for name in names))
