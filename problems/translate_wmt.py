"""The papers' translation tasks, on the text that tensorflow-datasets fetches.

WMT 2014: trained on everything given for the constrained task, developed on
newstest2013, scored on newstest2014, as in section 5.1 of arXiv:1706.03762. The text
is raw; the papers' tokenised scores are a matter of scoring.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.data.problem import Problem, Vocabulary
from t2t_repro.errors import UserError
from t2t_repro.registry import register_problem

if TYPE_CHECKING:
    import tensorflow_datasets as tfds

_TFDS_SPLITS = {"train": "train", "dev": "validation", "test": "test"}
_SENTENCES_AT_A_TIME = 1_000


class TranslateWmt14(Problem):
    """A language pair of `wmt14_translate`, English first.

    Attributes:
        tfds_config: the pair's name there, as "de-en".
        target_language: the other language's code.
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
        """Gives the builder with its text on disk, downloading what is missing.

        Raises:
            UserError: if the download fails.
        """
        builder = self._builder(tmp_dir)
        try:
            builder.download_and_prepare()
        # A mirror that is gone shows as a network error, a wrong checksum, a broken
        # archive or a page where an archive was expected.
        except Exception as error:
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            raise UserError(
                f"fetching {builder.info.full_name} with tensorflow-datasets failed: "
                f"{reason}.\nTry again (what has been fetched is kept), or give the "
                f"text to --problem text_pairs"
            ) from error
        return builder


def _line(text: bytes) -> str:
    return text.decode("utf-8").replace("\n", " ")


@register_problem("translate_ende_wmt14")
class TranslateEndeWmt14(TranslateWmt14):
    """WMT 2014 English to German, 4.5 million pairs, 37,000 shared subwords."""

    vocabulary = Vocabulary(size=37_000)
    tfds_config = "de-en"
    target_language = "de"


@register_problem("translate_enfr_wmt14")
class TranslateEnfrWmt14(TranslateWmt14):
    """WMT 2014 English to French, 36 million pairs, 32,000 shared subwords."""

    vocabulary = Vocabulary(size=32_000)
    tfds_config = "fr-en"
    target_language = "fr"
