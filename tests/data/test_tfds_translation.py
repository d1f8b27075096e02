"""A data set of tensorflow-datasets by name; its text is made here, not downloaded."""

from __future__ import annotations

import pytest
import tensorflow_datasets as tfds
from tensorflow_datasets.core.download.download_manager import NonMatchingChecksumError

from t2t_repro import catalogue
from t2t_repro.data.prepare import open_or_prepare, prepare
from t2t_repro.data.request import PairFiles, TfdsName
from t2t_repro.data.tfds_problems import TfdsTranslationProblem
from t2t_repro.errors import UsageError, UserError
from t2t_repro.settings.prepare_settings import PrepareSettings

TEXT = {
    "train": [(f"casa {n}", f"house\n{n}") for n in range(60)],
    "validation": [("casa um", "house one"), ("céu", "sky")],
    "test": [("mar", "sea")],
}
SETTINGS = PrepareSettings(vocab_size=300, num_shards=2)


class _Tiny(tfds.core.GeneratorBasedBuilder):
    VERSION = tfds.core.Version("1.2.0")
    KEYS = ("pt", "en")
    SPLITS = ("train", "validation", "test")

    def _info(self):
        features = tfds.features.Translation(languages=("en", "pt"))
        return self.dataset_info_from_configs(
            features=features, supervised_keys=self.KEYS
        )

    def _split_generators(self, manager):
        return {split: self._generate_examples(split) for split in self.SPLITS}

    def _generate_examples(self, split):
        for number, (source, target) in enumerate(TEXT[split]):
            yield number, {"pt": source, "en": target}


class TinyTranslation(_Tiny):
    """Portuguese to English."""


class TinyWithoutValidation(_Tiny):
    """No split to evaluate on."""

    SPLITS = ("train", "test")


class TinyUnsupervised(_Tiny):
    """No sides."""

    KEYS = None


class TinyBroken(_Tiny):
    """Its text cannot be fetched."""

    def _split_generators(self, manager):
        raise OSError("no route to host\nat all")


class TinyDamaged(_Tiny):
    """Its text is another than was announced."""

    def _split_generators(self, manager):
        raise NonMatchingChecksumError("Artifact a.tgz has wrong checksum")


def test_pairs_are_those_of_the_supervised_keys(tmp_path):
    problem = TfdsTranslationProblem("tiny_translation")
    problem.check(tmp_path)
    assert problem.splits == ("train", "dev", "test")
    assert [*problem.pairs("dev", tmp_path)] == TEXT["validation"]
    assert [*problem.pairs("test", tmp_path)] == TEXT["test"]
    train = [*problem.pairs("train", tmp_path)]
    assert sorted(train) == sorted((s, t.replace("\n", " ")) for s, t in TEXT["train"])
    assert [*problem.pairs("train", tmp_path)] == train
    counts = [problem.num_pairs(split, tmp_path) for split in problem.splits]
    assert counts == [60, 2, 1]


def test_a_download_is_logged_once(tmp_path, caplog):
    caplog.set_level("INFO", "t2t_repro")
    problem = TfdsTranslationProblem("tiny_translation")
    problem.check(tmp_path)
    problem.check(tmp_path)
    logged = [line for line in caplog.messages if "downloading" in line]
    assert logged == ["tiny_translation/1.2.0: downloading the text"]


def test_the_registered_problem_is_prepared_and_opened_without_the_name(tmp_path):
    files = {"train": TfdsName("tiny_translation:1.2.0")}
    problem = catalogue.problem("translate_tfds").with_files(files)
    prepare(problem, tmp_path / "data", tmp_path / "tmp", SETTINGS)
    data = open_or_prepare(catalogue.problem("translate_tfds"), tmp_path / "data")
    assert data.manifest.sources == {
        "tensorflow_datasets": {"name": "tiny_translation/1.2.0"}
    }
    assert data.raw_text("dev") == (["casa um", "céu"], ["house one", "sky"])
    reversed_ = open_or_prepare(
        catalogue.problem("translate_tfds_rev"), tmp_path / "data"
    )
    assert reversed_.raw_text("test") == (["sea"], ["mar"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tiny_without_validation", "with the splits train, test, expected train and"),
        ("tiny_unsupervised", "supervised keys None, expected two that are text"),
        (
            "tiny_broken",
            r"downloading tiny_broken/1.2.0 .* failed: no route to host\.\n",
        ),
        (
            "tiny_damaged",
            r"downloading tiny_damaged/1.2.0 .* failed: Artifact a.tgz has wrong ",
        ),
        ("tiny_unheard_of", "received data set tiny_unheard_of, expected one of"),
        ("tiny_translation:9.9.9", "received data set tiny_translation:9.9.9"),
    ],
)
def test_an_unsuitable_data_set_is_refused(tmp_path, name, message):
    problem = TfdsTranslationProblem(name)
    with pytest.raises(UserError, match=message):
        prepare(problem, tmp_path / "data", tmp_path / "tmp", SETTINGS)
    assert not (tmp_path / "data").exists()


def test_without_a_name_nothing_can_be_prepared(tmp_path):
    with pytest.raises(UsageError, match="translate_tfds received no data set"):
        prepare(catalogue.problem("translate_tfds"), tmp_path)


def test_files_are_no_data_set(tmp_path):
    from t2t_repro.data.request import with_files

    problem = catalogue.problem("translate_tfds")
    with pytest.raises(UsageError, match="expected tfds"):
        with_files(problem, {"train": PairFiles(tmp_path / "a", tmp_path / "b")})
