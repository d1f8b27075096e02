from __future__ import annotations

import re
import socket
import time

import pytest
import requests
import tensorflow_datasets as tfds
from tensorflow_datasets.core.download import downloader

from t2t_repro import catalogue
from t2t_repro.data.problem import Problem
from t2t_repro.data.request import TfdsName
from t2t_repro.errors import UserError

SENTENCES = {
    "train": [("A house.", "Ein Haus."), ("Two\nlines", "Zwei\nZeilen")] * 20,
    "validation": [("A tree.", "Ein Baum.")],
    "test": [("A dog.", "Ein Hund."), ("A cat.", "Eine Katze.")],
}


def as_dataset(target_language: str):
    """Return a function that replaces the reading of downloaded text."""

    def read(builder, split, *_, **__):
        import tensorflow as tf

        english, other = zip(*SENTENCES[split], strict=True)
        return tf.data.Dataset.from_tensor_slices(
            {"en": list(english), target_language: list(other)}
        )

    return read


def problem_of_wmt14(name: str) -> Problem:
    problem = catalogue.problem(name)
    if problem.file_kind != "tfds":
        return problem
    return problem.with_files({"train": TfdsName("wmt14_translate/fr-en")})


# tensorflow-datasets' own mocking imports modules with deprecation warnings.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("name", "language"),
    [("translate_ende_wmt14", "de"), ("translate_enfr_wmt14", "fr")],
)
def test_splits_are_those_of_the_paper_english_first(tmp_path, name, language):
    problem = catalogue.problem(name)
    with tfds.testing.mock_data(as_dataset_fn=as_dataset(language)):
        found = {
            split: list(problem.pairs(split, tmp_path)) for split in problem.splits
        }
    assert found == {
        "train": [("A house.", "Ein Haus."), ("Two lines", "Zwei Zeilen")] * 20,
        "dev": [("A tree.", "Ein Baum.")],
        "test": [("A dog.", "Ein Hund."), ("A cat.", "Eine Katze.")],
    }


# tensorflow-datasets warns of attributes that it deprecated itself.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_without_a_network_a_download_fails_within_seconds(tmp_path, monkeypatch):
    asked = []

    def unknown_host(host: str, *_: object, **__: object) -> None:
        asked.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    for variable in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.delenv(variable.upper(), raising=False)
    monkeypatch.setattr(socket, "getaddrinfo", unknown_host)
    start = time.monotonic()
    with pytest.raises(UserError) as caught:
        catalogue.problem("translate_ende_wmt14").check(tmp_path)
    assert time.monotonic() - start < 20
    first, second = str(caught.value).splitlines()
    assert re.fullmatch(
        r"wmt14_translate/de-en/[\d.]+: cannot download http://\S+\.tgz: no connection "
        r"to [\w.]+\.",
        first,
    )
    assert first.endswith(f"{asked[0]}.")
    assert second.startswith("Check the network")
    assert "text_pairs" in second
    # Each of the files that are fetched at the same time is tried four times.
    assert asked.count(asked[0]) % 4 == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["translate_enfr_wmt14", "translate_tfds"])
def test_a_server_that_does_not_answer_is_not_waited_for(tmp_path, monkeypatch, name):
    waiting = []

    def silent(session: requests.Session, url: str, **options: object) -> None:
        waiting.append(options["timeout"])
        request = requests.Request("GET", url).prepare()
        raise requests.ConnectTimeout("timed out", request=request)

    monkeypatch.setattr(requests.Session, "get", silent)
    usual = downloader.MAX_RETRIES, downloader._open_url
    with pytest.raises(UserError, match=r"no connection to www\.statmt\.org"):
        problem_of_wmt14(name).check(tmp_path)
    assert set(waiting) == {(4, 60)}
    assert (downloader.MAX_RETRIES, downloader._open_url) == usual


@pytest.mark.parametrize(
    ("name", "size"),
    [("translate_ende_wmt14", 37_000), ("translate_enfr_wmt14", 32_000)],
)
def test_the_vocabulary_has_the_size_of_the_paper(name, size):
    settings = catalogue.problem(name).prepare_settings
    assert (settings.vocab_size, settings.shared_vocabulary) == (size, True)


def test_repeated_pairs_are_kept_as_in_the_papers():
    assert not catalogue.problem(
        "translate_ende_wmt14"
    ).prepare_settings.drop_duplicates
