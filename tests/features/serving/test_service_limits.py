"""Every request is bounded and checked before work begins, and errors are JSON."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time

import pytest

from t2t_repro.errors import UserError
from t2t_repro.features.serving import command_serve
from t2t_repro.features.serving.http_access import Access
from t2t_repro.features.serving.http_app import create_app
from t2t_repro.features.serving.http_server import HttpServer, bind
from t2t_repro.features.serving.service import Service
from t2t_repro.features.serving.service_settings import ServiceSettings
from tests.fuzz.fuzz_http import Fuzzer
from tests.support.served import Client, ShoutingModel, serving
from tests.support.waiting import until

TEXT = {"q": "a dog", "source": "en", "target": "de"}


@pytest.fixture(scope="module")
def client():
    with serving(
        ShoutingModel(), max_body=2000, max_texts=3, max_characters=300, read_timeout=1
    ) as client:
        yield client


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/translate", b"{", 400, "not JSON"),
        ("/translate", b"[" * 1900, 400, "not JSON"),
        ("/translate", b'{"q": NaN}', 400, "NaN is not JSON"),
        ("/translate", b'{"q": "\xff"}', 400, "not JSON in UTF-8"),
        ("/translate", b"[]", 400, "expected a JSON object"),
        ("/translate", {}, 400, "the text in the field q"),
        ("/translate", {**TEXT, "q": 3}, 400, "received 3, expected a string as q"),
        ("/translate", {**TEXT, "q": ["a", None]}, 400, "expected a string as q"),
        ("/translate", {**TEXT, "q": []}, 400, "no text"),
        ("/translate", {**TEXT, "q": ["a"] * 4}, 413, "4 texts, expected at most 3"),
        ("/translate", {**TEXT, "q": "a" * 301}, 413, "301 characters"),
        (
            "/translate",
            {**TEXT, "q": "a\n" * 4},
            413,
            "4 sentences, expected at most 3",
        ),
        ("/translate", {**TEXT, "q": "a" * 3000}, 413, "more than 2,000 bytes"),
        ("/translate", {**TEXT, "target": "fr"}, 400, "expected 'en to de'|en to de"),
        ("/translate", {**TEXT, "format": "html"}, 400, "the format text"),
        ("/translate", {**TEXT, "alternatives": -1}, 400, "from 0 to 15"),
        ("/translate", {**TEXT, "alternatives": "x"}, 400, "from 0 to 15"),
        ("/translate", {**TEXT, "model": "en-dee"}, 404, "Did you mean en-de"),
        ("/translate", {**TEXT, "decode_hparams": []}, 400, "expected an object"),
        ("/translate", {**TEXT, "decode_hparams": {"beem_size": 1}}, 400, "beam_size"),
        ("/translate", {**TEXT, "decode_hparams": {"alpha": "x"}}, 400, "a number"),
        ("/translate", {**TEXT, "decode_hparams": {"alpha": 10**400}}, 400, "finite"),
        ("/translate", {**TEXT, "decode_hparams": {"beam_size": 10**400}}, 400, "at m"),
        ("/translate", {**TEXT, "decode_hparams": {"self": 1}}, 400, "'self'"),
        (
            "/translate",
            {**TEXT, "decode_hparams": {"no_repeat_ngram_size": 51}},
            400,
            "at most 50",
        ),
        ("/translate", {**TEXT, "q": "a" * 9_000_000}, 413, "more than 2,000 bytes"),
        (
            "/translate",
            {**TEXT, "decode_hparams": {"beam_size": 99}},
            400,
            "at most 16",
        ),
        ("/translate", {**TEXT, "decode_hparams": {"batch_size": 9}}, 400, "server"),
        (
            "/translate",
            {**TEXT, "decode_hparams": {"sampling_seed": 1}},
            400,
            "sampling_seed would have no effect",
        ),
        (
            "/translate",
            {**TEXT, "target_prefix": "impossible"},
            400,
            "impossible prefix",
        ),
        ("/attention", {"model": "en-de"}, 400, "the sentence in the field q"),
        ("/detect", {"q": "a"}, 501, "detects no language"),
        ("/nothing", None, 404, "none of this server's paths"),
        ("/static/../http_app.py", None, 404, "none of this server's paths"),
        ("/translate/", None, 404, "none of this server's paths"),
        ("/translate", None, 405, "received GET, expected POST"),
    ],
)
def test_a_bad_request_gets_a_sentence(client, path, body, status, message):
    answer = client.ask(path, body)
    assert answer.status == status
    assert message.split("|")[-1] in answer.error
    assert len(answer.error) < 700
    assert answer.headers["content-type"] == "application/json"
    assert client.ask("/translate", TEXT).json == {"translatedText": "A DOG"}


@pytest.mark.parametrize("path", ["/translate", "/v1/models/en-de:predict"])
def test_another_type_of_body_is_refused(client, path):
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = client.ask(path, b"--x--", headers=headers)
    assert (answer.status, answer.error[:16]) == (415, "received a body ")


def test_a_slow_body_is_ended_and_so_is_a_slow_head(client):
    start = time.monotonic()
    for head in (b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ", b""):
        body = b"y\r\nContent-Length: 100\r\n\r\n{" if head else b"GET"
        with socket.create_connection(client.address, timeout=10) as connection:
            connection.sendall(head + body)
            answer = connection.recv(10_000)
        assert answer.startswith(b"HTTP/1.1 408") if head else answer == b""
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("start", ["", "Transfer-Encoding: chunked\r\n\r\n0\r\n"])
def test_a_head_or_a_trailer_without_end_is_ended(client, start):
    with socket.create_connection(client.address, timeout=10) as connection:
        connection.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n{start}".encode())
        head = b"X-More: " + b"x" * 10_000 + b"\r\n"
        with pytest.raises(ConnectionError):
            connection.sendall(head * 1000)
    assert client.ask("/healthz").status == 200


@pytest.mark.parametrize(
    "head", ["GET /healthz", "POST /nothing", "POST /v1/models/unknown:predict"]
)
def test_a_connection_is_ended_whatever_comes_after_an_answer(client, head):
    with socket.create_connection(client.address, timeout=10) as connection:
        length = "Content-Length: 100000\r\n" if "POST" in head else ""
        connection.sendall(
            f"{head} HTTP/1.1\r\nHost: 127.0.0.1\r\n{length}\r\n".encode()
        )
        answer = b""
        while b"}" not in answer:
            answer += connection.recv(10_000)
        connection.sendall(b"\r\n")
        with contextlib.suppress(ConnectionResetError):
            while connection.recv(10_000):
                pass


def test_a_client_that_takes_no_answer_is_ended(client):
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(10)
        connection.connect(client.address)
        request = b"GET /static/attention_view.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        connection.sendall(request * 250)
        until(lambda: client.server.server_state.tasks)
        until(lambda: not client.server.server_state.tasks)
        with pytest.raises(ConnectionError):
            connection.sendall(request * 100_000)


def test_requests_may_follow_each_other_without_waiting(client):
    request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with socket.create_connection(client.address, timeout=10) as connection:
        connection.sendall(request * 200)
        answers = b""
        while answers.count(b"ok") < 200:
            received = connection.recv(100_000)
            assert received, answers
            answers += received


def test_connections_over_the_limit_are_closed_and_the_others_are_answered():
    with serving(ShoutingModel(), max_connections=2) as client:
        request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        with contextlib.ExitStack() as stack:
            first, second, third = (
                stack.enter_context(socket.create_connection(client.address, timeout=9))
                for _ in range(3)
            )
            with contextlib.suppress(ConnectionResetError):
                assert third.recv(1000) == b""
            for connection in (first, second):
                connection.sendall(request)
                assert connection.recv(1000).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("size", [10, 10_000])
@pytest.mark.parametrize("chunked", [False, True])
def test_an_offer_of_another_protocol_is_ignored(client, size, chunked):
    # The first request of Java's client offers HTTP/2.
    content = json.dumps(TEXT).encode()
    length = f"Content-Length: {len(content)}"
    if chunked:
        content = b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content)
        length = "Transfer-Encoding: chunked"
    head = (
        "POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: h2c\r\n"
        f"Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AA\r\n{length}\r\n\r\n"
    )
    data = (head.encode() + content) * 2
    with socket.create_connection(client.address, timeout=10) as connection:
        for start in range(0, len(data), size):
            connection.sendall(data[start : start + size])
        answers = b""
        while answers.count(b"A DOG") < 2:
            received = connection.recv(10_000)
            assert received, answers
            answers += received


def test_what_is_not_http_gets_json(client):
    with socket.create_connection(client.address, timeout=10) as connection:
        connection.sendall(b"EHLO example.org\r\n\r\n")
        answer = connection.recv(10_000)
    assert answer.endswith(b'\r\n\r\n{"error": "received what is not HTTP/1.1."}')


def test_a_port_that_another_process_took_meanwhile_is_an_error():
    first = bind("127.0.0.1", 0)
    service = Service([ShoutingModel()], ServiceSettings())
    second = bind(*first.getsockname())
    second.listen()
    with first, second, pytest.raises(UserError, match="cannot listen on http://127"):
        HttpServer(create_app(service, Access()), service, first).run_until_stopped()
    service.batches.close()


@pytest.mark.parametrize("key", ["schl\u00fcssel", "\ufeffkey", "\udcff"])
def test_keys_that_no_header_can_have_are_refused(key, tmp_path, monkeypatch):
    monkeypatch.setenv("T2T_API_KEY", "key")
    assert command_serve._keys(None) == ["key"]
    file = tmp_path / "keys"
    file.write_bytes(key.encode("utf-8", "surrogatepass"))
    with pytest.raises(UserError, match=r"other characters|not UTF-8"):
        command_serve._keys(str(file))


def test_answers_are_sent_at_once(client):
    # Without TCP_NODELAY, each answer on a connection that stays open takes 40 ms.
    bound = bind("127.0.0.1", 0)
    assert bound.proto == socket.IPPROTO_TCP
    bound.close()


def test_a_proxy_is_asked_to_pass_events_on_at_once(client):
    answer = client.ask("/translate", {**TEXT, "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["x-accel-buffering"] == "no"  # nginx's


def test_a_deadline_ends_a_request():
    model = ShoutingModel()
    model.gate.clear()
    with serving(model, deadline=0.3) as client:
        assert client.ask("/translate", TEXT).status == 504
        assert client.service.batches.waiting == 0
        model.gate.set()
        assert client.ask("/translate", TEXT).status == 200


def ask_in_thread(client: Client, body: dict) -> tuple[threading.Thread, list]:
    answers: list = []
    thread = threading.Thread(
        target=lambda: answers.append(client.ask("/translate", body))
    )
    thread.start()
    return thread, answers


def test_a_full_queue_answers_429_with_retry_after():
    model = ShoutingModel()
    model.gate.clear()
    with serving(model, workers=1, max_queue=1) as client:
        threads = [ask_in_thread(client, TEXT)]
        until(lambda: model.batches)
        threads.append(ask_in_thread(client, TEXT))
        until(lambda: client.service.batches.waiting == 1)
        refused = client.ask("/translate", TEXT)
        assert refused.status == 429
        assert int(refused.headers["retry-after"]) >= 1
        model.gate.set()
        for thread, answers in threads:
            thread.join()
            assert answers[0].json == {"translatedText": "A DOG"}


def test_a_client_that_leaves_frees_its_place():
    model = ShoutingModel()
    model.gate.clear()
    with serving(model, workers=1) as client:
        thread, _ = ask_in_thread(client, TEXT)
        until(lambda: model.batches)
        connection = socket.create_connection(client.address, timeout=10)
        connection.sendall(
            b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 34\r\n\r\n"
            b'{"q": "left", "model": "en-de"}   '
        )
        until(lambda: client.service.batches.waiting == 1)
        connection.close()
        until(lambda: client.service.batches.waiting == 0)
        model.gate.set()
        thread.join()
        metrics = client.ask("/metrics").content.decode()
    assert 't2t_requests_total{code="499",path="/translate"} 1.0' in metrics
    assert ["left"] not in model.batches


def test_an_error_of_the_model_shows_nothing_of_it():
    model = ShoutingModel()
    model.error = RuntimeError("a secret")
    with serving(model) as client:
        answer = client.ask("/translate", TEXT)
        assert (answer.status, "secret" in answer.error) == (500, False)
        model.error = None
        assert client.ask("/translate", TEXT).status == 200


def test_sentences_leave_the_queue_when_another_of_their_request_fails():
    model = ShoutingModel(seconds=0.02)
    model.error = RuntimeError("a secret")
    with serving(model, workers=1, max_batch=1) as client:
        predict = {"instances": ["a"] * 500}
        for path, body in (
            ("/translate", {**TEXT, "q": ["a"] * 500}),
            ("/v1/models/en-de:predict", predict),
        ):
            assert client.ask(path, body).status == 500
            until(lambda: not client.service.batches.waiting)
    assert len(model.batches) < 20


def test_a_stream_that_fails_says_so():
    model = ShoutingModel()
    model.error = RuntimeError("a secret")
    with serving(model) as client:
        answer = client.ask("/translate", {**TEXT, "stream": True})
    failed = b'event: error\ndata: {"error": "this server failed; its log says why."}'
    assert answer.content.strip() == failed


def test_only_this_machine_and_its_pages_are_answered_by_default(client):
    for headers in (
        {"Host": "evil.example"},
        {"Host": "["},
        {"Host": "127.0.0.1/healthz?"},
        {"Origin": "http://["},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ):
        answer = client.ask("/translate", TEXT, headers=headers)
        assert answer.status == 403
        assert "access-control-allow-origin" not in answer.headers
    assert client.ask("/translate", TEXT, headers={"Origin": client.url}).status == 200


def test_other_sites_are_answered_if_asked():
    access = Access(cors_origins=["https://example.org"])
    with serving(ShoutingModel(), access=access) as client:
        for origin, status in (("https://example.org", 200), ("https://e.org", 403)):
            answer = client.ask("/translate", TEXT, headers={"Origin": origin})
            assert answer.status == status
        asked = {
            "Origin": "https://example.org",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type",
        }
        answer = client.ask("/translate", method="OPTIONS", headers=asked)
        assert answer.headers["access-control-allow-origin"] == "https://example.org"


def test_a_key_opens_everything_but_the_page_and_the_health():
    with serving(ShoutingModel(), access=Access(keys=["one", "two"])) as client:
        for path in ("/healthz", "/readyz", "/languages", "/v1/models"):
            assert client.ask(path).status == 200
        for path in ("/metrics", "/v1/models/en-de", "/v1/models/en-de/metadata"):
            assert client.ask(path).status == 401
        for headers in (
            {},
            {"Authorization": "Bearer three"},
            {"Authorization": "two"},
        ):
            answer = client.ask("/translate", TEXT, headers=headers)
            assert answer.status == 401
        for host in ("127.0.0.1/healthz?", "127.0.0.1/v1/models#"):
            assert client.ask("/metrics", headers={"Host": host}).status == 401
        right = {"Authorization": "Bearer two"}
        assert client.ask("/translate", TEXT, headers=right).status == 200
        assert client.ask("/metrics", headers=right).status == 200
        assert client.ask("/translate", {**TEXT, "api_key": "one"}).status == 200
        assert client.ask("/v1/models").json["needs_key"] is True


def test_texts_are_logged_only_if_asked(caplog):
    caplog.set_level("INFO")
    for access in (Access(), Access(log_requests=True), Access(log_texts=True)):
        with serving(ShoutingModel(), access=access) as client:
            client.ask("/translate", TEXT)
            until(lambda: client.service.metrics.requests._metrics)
        lines = [
            r.getMessage() for r in caplog.records if "/translate" in r.getMessage()
        ]
        assert len(lines) == access.log_requests
        assert ("a dog" in "".join(lines)) == access.log_texts
        caplog.clear()


def test_random_hostile_requests_are_refused_and_the_next_one_is_served():
    async def fuzz(fuzzer):
        await fuzzer.prepare()
        for number in range(11):  # all but slow clients and 1,000 connections
            await fuzzer.run(number, seed=1)
        await fuzzer.finish(most_growth=100.0, log=None)

    with serving(ShoutingModel()) as client:
        fuzzer = Fuzzer(client.url, per_block=20)
        asyncio.run(fuzz(fuzzer))
    assert fuzzer.failures == []
    assert {200, 400, 404, 405, 413, 415} <= {*fuzzer.statuses}
