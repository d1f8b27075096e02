"""A server around Hugging Face's `generate`, as one would write it in a few lines.

    t2t export --format huggingface --output_dir run --export_dir marian
    python benchmarks/serving/huggingface_server.py --folder marian --threads 1

It answers `POST /translate` as `t2t serve` does, one request after the other: the same
weights, without batches of several clients. It needs the extra `huggingface` and
nothing of this package.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def load(folder: str, threads: int, beam_size: int) -> Callable[[str], str]:
    """Return a function that translates a text, one call at a time."""
    import torch
    from transformers import MarianMTModel, MarianTokenizer

    torch.set_num_threads(threads)
    tokenizer = MarianTokenizer.from_pretrained(folder)
    model = MarianMTModel.from_pretrained(folder).eval()
    one_at_a_time = threading.Lock()

    def translate(text: str) -> str:
        batch = tokenizer([text], return_tensors="pt")
        longest = batch["input_ids"].shape[1] + 50  # this package's limit
        with one_at_a_time, torch.inference_mode():
            ids = model.generate(
                **batch, num_beams=beam_size, max_length=None, max_new_tokens=longest
            )
        return tokenizer.batch_decode(ids, skip_special_tokens=True)[0]

    return translate


def handler(translate: Callable[[str], str]) -> type[BaseHTTPRequestHandler]:
    """Return the class that answers requests with a translation."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # connections are kept alive
        disable_nagle_algorithm = True  # or each answer waits for 40 ms

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            text = translate(json.loads(body)["q"])
            answer = json.dumps({"translatedText": text}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return Handler


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--beam_size", type=int, default=4)
    args = parser.parse_args()
    translate = load(args.folder, args.threads, args.beam_size)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(translate))
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
