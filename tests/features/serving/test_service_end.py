"""What was accepted is answered when a server ends, and a run is served as it is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request

from tests.support.served import ShoutingModel, serving
from tests.support.waiting import until

TEXT = {"q": "a dog", "source": "en", "target": "de"}


def test_accepted_requests_are_answered_when_the_server_is_stopped():
    model = ShoutingModel()
    model.gate.clear()
    answers = []
    with serving(model) as client:
        thread = threading.Thread(
            target=lambda: answers.append(client.ask("/translate", TEXT))
        )
        thread.start()
        until(lambda: model.batches)
        client.server.stop()
        until(lambda: client.service.is_stopping)
        assert client.ask("/readyz").status == 503
        model.gate.set()
        thread.join()
    assert answers[0].json == {"translatedText": "A DOG"}
    assert answers[0].headers["connection"] == "close"


def test_t2t_serve_answers_as_the_system_does_and_ends_with_exit_code_0(trained):
    from t2t_repro.runs import System

    sentence = "one times: the house is red ."
    (expected,) = System.load(trained.output_dir).translate([sentence])
    command = [sys.executable, "-m", "t2t_repro.cli.main", "serve", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--model", f"en-de={trained.output_dir}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "T2T_API_KEY": "secret"},
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        request = urllib.request.Request(
            f"{address}/v1/models/en-de:predict",
            json.dumps({"instances": [sentence]}).encode(),
            {"Authorization": "Bearer secret"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            (prediction,) = json.load(answer)["predictions"]
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
    finally:
        process.kill()
    assert prediction["outputs"] == expected
    assert process.returncode == 0, log
    assert "all accepted requests are answered" in log
    assert "the house" not in log
