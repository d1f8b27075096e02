"""A problem of nine pairs, and settings whose values are unlike the defaults."""

from __future__ import annotations

from t2t_repro.data.problem import Problem, Vocabulary
from t2t_repro.settings.prepare_settings import PrepareSettings
from t2t_repro.text import SymbolTokenizer

TEXT = {
    "train": [("1 2", "a b"), ("3", "c"), ("1 1 1 1", "a"), ("2 3", "b c"), ("", "a")],
    "dev": [("2", "b"), ("3", "c"), ("1 1 1", "b b")],
    "test": [("1 3 2", "a c")],
}
SETTINGS = PrepareSettings(
    vocab_size=330,
    model_type="unigram",
    shared_vocabulary=False,
    max_pair_length=4,
    max_length_ratio=2.5,
    drop_duplicates=True,
    num_shards=2,
    shuffle_seed=5,
    character_coverage=0.99,
)
DIGITS, LETTERS = SymbolTokenizer(list("1234")), SymbolTokenizer(list("ABC"))


class Pairs(Problem):
    """Digits to letters; the model writes capital letters."""

    version = 7
    vocabulary = Vocabulary(size=340)

    def __init__(self, **text):
        self.text = TEXT | text
        self.splits = tuple(reversed(self.text))
        self.read = []

    def check(self, tmp_dir):
        self.read.append(("check", tmp_dir))

    def pairs(self, split, tmp_dir):
        self.read.append((split, tmp_dir))
        yield from self.text[split]

    def encode_target(self, target):
        return target.upper()

    def source_identities(self, tmp_dir):
        self.read.append(("identities", tmp_dir))
        return {"text": {"lines": 9}}
