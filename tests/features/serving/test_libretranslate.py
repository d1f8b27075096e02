"""LibreTranslate's own Python client works against this server."""

from __future__ import annotations

from urllib.error import HTTPError

import pytest
from libretranslatepy import LibreTranslateAPI

from t2t_repro.features.serving.http_access import Access
from tests.support.served import ShoutingModel, serving

PARAGRAPHS = "  A dog runs. It sleeps.\n\nWe saw it: 50 % & more?\t"


@pytest.fixture(scope="module")
def server():
    access = Access(keys=["secret"], hosts=["127.0.0.1"])
    with serving(ShoutingModel(), ShoutingModel("de-fr"), access=access) as server:
        yield server


@pytest.fixture
def client(server):
    return LibreTranslateAPI(server.url, "secret")


def status_of(call, *arguments):
    with pytest.raises(HTTPError) as caught:
        call(*arguments)
    with caught.value as answer:
        assert b'"error"' in answer.read()
        return answer.code


def test_it_translates_a_text_and_keeps_its_white_space(client):
    assert client.translate(PARAGRAPHS, "en", "de") == PARAGRAPHS.upper()
    assert client.translate("ein Hund", "auto", "fr") == "EIN HUND"


def test_it_lists_languages_with_what_each_is_translated_into(client):
    assert client.languages() == [
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "de", "name": "German", "targets": ["fr"]},
        {"code": "fr", "name": "French", "targets": []},
    ]


def test_what_no_model_can_do_is_refused(server, client):
    assert status_of(client.translate, "a dog", "en", "fr") == 400
    assert status_of(client.translate, "a dog" * 30_000, "en", "de") == 413
    assert status_of(client.detect, "a dog") == 501
    stranger = LibreTranslateAPI(server.url, "wrong")
    assert status_of(stranger.translate, "a dog", "en", "de") == 401
