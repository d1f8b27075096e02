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
from t2t_repro.errors import UserError

if TYPE_CHECKING:
    import tensorflow_datasets as tfds

_TFDS_SPLITS = {"train": "train", "dev": "validation", "test": "test"}
_SENTENCES_AT_A_TIME = 1_000


class TranslateWmt14(Problem):
    """A language pair of `wmt14_translate`, English first.

    Attributes:
        tfds_config: Name of the pair in `wmt14_translate`, such as "de-en".
        target_language: Code of the other language.
    """

    tfds_config: str
    target_language: str

    def pairs(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[tuple[str, str]]:
        import tensorflow_datasets as tfds

        builder = self._downloaded(tmp_dir)
        dataset = builder.as_dataset(split=_TFDS_SPLITS[split], shuffle_files=False)
        batches = dataset.batch(_SENTENCES_AT_A_TIME).prefetch(1)
        for batch in tfds.as_numpy(batches):
            for source, target in zip(
                batch["en"], batch[self.target_language], strict=True
            ):
                yield _line(source), _line(target)

    def source_identities(
        self, tmp_dir: str | Path | None
    ) -> Mapping[str, Mapping[str, object]]:
        return {"tensorflow_datasets": {"name": self._builder(tmp_dir).info.full_name}}

    def check(self, tmp_dir: str | Path | None) -> None:
        self._downloaded(tmp_dir)

    def _builder(self, tmp_dir: str | Path | None) -> tfds.core.DatasetBuilder:
        import tensorflow_datasets as tfds

        return tfds.builder(f"wmt14_translate/{self.tfds_config}", data_dir=tmp_dir)

    def _downloaded(self, tmp_dir: str | Path | None) -> tfds.core.DatasetBuilder:
        """Return the builder, after downloading its text if it is missing.

        Raises:
            UserError: If the download fails.
        """
        builder = self._builder(tmp_dir)
        try:
            builder.download_and_prepare()
        # If a mirror is gone, there is a network error, a wrong checksum, a broken
        # archive, or a page instead of an archive.
        except Exception as error:
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            raise UserError(
                f"fetching {builder.info.full_name} with tensorflow-datasets failed: "
                f"{reason}.\nTry again (what has been fetched is kept), or give the "
                f"text to the problem text_pairs"
            ) from error
        return builder


def _line(text: bytes) -> str:
    return text.decode("utf-8").replace("\n", " ")
