"""WMT 2014 translation, with the text from tensorflow-datasets.

The training split is all the text of the constrained task, the dev split is
newstest2013, and the test split is newstest2014, as in section 5.1 of arXiv:1706.03762.
The text is raw; the tokenisation of the papers' scores belongs to the scoring.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.data.problem import Problem
from t2t_repro.data.tfds_text import download, read_pairs

if TYPE_CHECKING:
    import tensorflow_datasets as tfds


class TranslateWmt14(Problem):
    """A language pair of `wmt14_translate`, English first.

    Attributes:
        tfds_config: Name of the pair in `wmt14_translate`, such as "de-en".
        target_language: Code of the other language.
    """

    tfds_config: str
    source_language: str = "en"
    target_language: str

    def pairs(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[tuple[str, str]]:
        builder = self._builder(tmp_dir)
        download(builder)
        return read_pairs(builder, split, (self.source_language, self.target_language))

    def source_identities(
        self, tmp_dir: str | Path | None
    ) -> Mapping[str, Mapping[str, object]]:
        return {"tensorflow_datasets": {"name": self._builder(tmp_dir).info.full_name}}

    def check(self, tmp_dir: str | Path | None) -> None:
        download(self._builder(tmp_dir))

    def _builder(self, tmp_dir: str | Path | None) -> tfds.core.DatasetBuilder:
        import tensorflow_datasets as tfds

        return tfds.builder(f"wmt14_translate/{self.tfds_config}", data_dir=tmp_dir)
