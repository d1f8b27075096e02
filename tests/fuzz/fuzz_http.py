"""Send random and hostile requests to a running server.

    t2t serve --model en-de=run --port 8000 2> server.log
    python -m tests.fuzz.fuzz_http --requests 20000 --seed 1 \
        --url http://127.0.0.1:8000 --log server.log

After each block of hostile requests, a valid one must be answered within `--seconds`.
An error must be JSON with a message and without a traceback, and its status must be one
that the interface has, which 500 is not. Some blocks are of slow clients, of clients
that leave, and of 1,000 connections at once. At the end, the queue must be empty, the
server's memory may have grown by at most `--most_growth`, and its log may have no
traceback.

Each block has its own seed, so `--first_block` repeats a failure without the blocks
before it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.fuzz.hostile_requests import KINDS, Hostile, Target
from tests.support.raw_http import Answer, Connection, NoAnswer, json_message, message

AT_ONCE = 16
FLOOD = 1000
SLOW_CLIENTS = 8
UNFINISHED = 2.0  # seconds that a client waits who did not end its request
SHOWN = 30  # failures


class Fuzzer:
    """A running server, and what went wrong.

    Args:
        url: Its address.
        seconds: Longest time until a valid request is answered.
        max_body: Largest body in bytes that it reads.
        read_timeout: Seconds in which a client must send a request.
        per_block: Requests of most blocks.
    """

    def __init__(
        self,
        url: str,
        seconds: float = 30.0,
        max_body: int = 1 << 20,
        read_timeout: float = 20.0,
        per_block: int = 200,
    ) -> None:
        self._url, self._seconds, self._read_timeout = url, seconds, read_timeout
        self._max_body, self._per_block = max_body, per_block
        self.statuses: Counter[int | str] = Counter()
        self.failures: list[str] = []
        self.slowest = 0.0

    @property
    def requests(self) -> int:
        return self.statuses.total()

    async def prepare(self) -> None:
        """Ask what the server has, and for the translation of a sentence."""
        found = (await self.ask(message("GET", "/v1/models"))).json()
        name = found["models"][0]["name"]
        self._target = Target(name, self._max_body, found["max_characters"])
        self._valid = json_message("/translate", {"q": "A dog runs.", "model": name})
        self._expected = (await self.ask(self._valid)).json()
        self._memory = await self.figure("process_resident_memory_bytes")

    async def ask(self, data: bytes) -> Answer:
        """Send a request over a new connection."""
        connection = await Connection.open(self._url)
        try:
            return await asyncio.wait_for(connection.ask(data), 2 * self._seconds)
        finally:
            connection.leave()

    async def figure(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's samples that have some labels."""
        text = (await self.ask(message("GET", "/metrics"))).body.decode()
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    async def run(self, number: int, seed: int) -> None:
        """Run a block, then a valid request."""
        before = len(self.failures)
        source = random.Random(f"{seed} {number}")
        blocks: list[Callable] = [self.hostile] * len(KINDS)
        blocks += [self.pipelined, self.unfinished, self.leaving, self.slow, self.flood]
        block = blocks[number % len(blocks)]
        kind = [KINDS[number % len(blocks)]] if block == self.hostile else []
        name = (kind or [block])[0].__name__
        start = time.monotonic()
        await block(source, *kind)
        await self.check_valid()
        for index in range(before, len(self.failures)):
            self.failures[index] = f"block {number}, {name}: {self.failures[index]}"
        for failure in self.failures[before : before + 3]:
            print(failure, flush=True)
        print(f"{number} {name}: {time.monotonic() - start:.1f} s", flush=True)

    async def check_valid(self) -> None:
        """Check that a valid request is answered in time."""
        start = time.monotonic()
        try:
            answer = await asyncio.wait_for(self.ask(self._valid), self._seconds)
            if (answer.status, answer.json()) != (200, self._expected):
                self.failures.append(f"valid request: {answer.status} {answer.body!r}")
        except (OSError, ValueError, TimeoutError) as error:
            self.failures.append(f"valid request: {error!r}")
        self.slowest = max(self.slowest, time.monotonic() - start)

    async def hostile(self, source: random.Random, kind: Callable) -> None:
        """Send requests of a kind, several at a time."""
        requests = [kind(source, self._target) for _ in range(self._per_block)]
        waiting = iter(requests)

        async def client() -> None:
            for request in waiting:
                await self.send(request)

        await asyncio.gather(*(client() for _ in range(AT_ONCE)))

    async def send(self, request: Hostile) -> None:
        """Send a request and check its answer."""
        shown = f"{request.data[:300]!r}"
        limit = UNFINISHED if request.may_close else 4 * self._seconds
        connection = await Connection.open(self._url)
        try:
            answer = await asyncio.wait_for(connection.ask(request.data), limit)
        except (NoAnswer, TimeoutError) as error:
            self.statuses[type(error).__name__] += 1
            if not request.may_close:
                self.failures.append(f"{error!r} for {shown}")
            return
        except ValueError as error:
            self.statuses["not HTTP"] += 1
            self.failures.append(f"{error} for {shown}")
            return
        finally:
            connection.leave()
        wrong = self.fault(answer, request)
        if wrong:
            self.failures.append(f"{wrong} for {shown}: {answer.body[:200]!r}")

    def fault(self, answer: Answer, request: Hostile) -> str:
        """Return what is wrong with an answer, or ""."""
        self.statuses[answer.status] += 1
        if answer.status not in request.allowed:
            return f"status {answer.status}"
        if answer.status == 429 and "retry-after" not in answer.headers:
            return "429 without Retry-After"
        if not answer.body:
            return ""  # an answer to HEAD
        is_json = answer.headers.get("content-type") == "application/json"
        try:
            document = answer.json() if is_json else None
        except ValueError:
            return "no JSON"
        if answer.status == 200:
            return request.check(document) if is_json else ""
        if not is_json or [*document] != ["error"]:
            return f"status {answer.status} without an error in JSON"
        message = document["error"]
        if not message or "Traceback" in message or 'File "' in message:
            return "a bad message"
        return ""

    async def pipelined(self, source: random.Random) -> None:
        """Send several requests before the first answer; answers come in order."""
        good = self._expected
        for _ in range(self._per_block // 10):
            connection = await Connection.open(self._url)
            await connection.send((self._valid + message("GET", "/nothing")) * 5)
            for index in range(10):
                answer = await asyncio.wait_for(connection.read(), self._seconds)
                self.statuses[answer.status] += 1
                wanted = 404 if index % 2 else 200
                if answer.status != wanted or (wanted == 200 and answer.json() != good):
                    self.failures.append(f"answer {index}: {answer}")
            connection.leave()

    async def unfinished(self, source: random.Random) -> None:
        """Announce more than is sent, then end the sending half or leave."""
        head = self._valid.partition(b"\r\n\r\n")[0]
        longer = head.replace(b"Content-Length: ", b"Content-Length: 9")

        async def client(data: bytes, ends: bool) -> None:
            connection = await Connection.open(self._url)
            await connection.send(data)
            if ends:
                connection.end_sending()
            with contextlib.suppress(NoAnswer, TimeoutError):
                await asyncio.wait_for(connection.read(), UNFINISHED)
            connection.leave()
            self.statuses["unfinished"] += 1

        kinds = [longer + b'\r\n\r\n{"q": "a"}', self._valid, self._valid[:40], b""]
        choices = [(data, ends) for data in kinds for ends in (True, False)]
        await asyncio.gather(
            *(client(*source.choice(choices)) for _ in range(self._per_block))
        )

    async def leaving(self, source: random.Random) -> None:
        """Leave at a random time after a valid request."""
        document = {"q": "A dog runs. " * 20, "model": self._target.model}
        documents = [document, {**document, "stream": True}]

        async def client() -> None:
            connection = await Connection.open(self._url)
            await connection.send(json_message("/translate", source.choice(documents)))
            await asyncio.sleep(source.random())
            connection.leave()
            self.statuses["left"] += 1

        await asyncio.gather(*(client() for _ in range(self._per_block // 2)))

    async def slow(self, source: random.Random) -> None:
        """Send a byte per second: the server must end this in time."""
        head, _, body = self._valid.partition(b"\r\n\r\n")
        longest = self._read_timeout * 2 + 10

        async def client(sent_at_once: bytes, rest: bytes) -> None:
            connection = await Connection.open(self._url)
            await connection.send(sent_at_once)
            start = time.monotonic()
            for byte in rest * 100:
                if not connection.is_open or time.monotonic() - start > longest:
                    break
                with contextlib.suppress(ConnectionError):
                    await connection.send(bytes([byte]))
                await asyncio.sleep(1)
            if connection.is_open:
                self.failures.append(f"a slow client was served for {longest:.0f} s")
            connection.leave()
            self.statuses["slow"] += 1

        long = head.replace(b"Content-Length: ", b"Content-Length: 9") + b"\r\n\r\n"
        watched = asyncio.gather(
            *(client(b"", head) for _ in range(SLOW_CLIENTS // 2)),
            *(client(long, body) for _ in range(SLOW_CLIENTS // 2)),
        )
        while not watched.done():
            await self.check_valid()
            await asyncio.wait([watched], timeout=3)
        await watched

    async def flood(self, source: random.Random) -> None:
        """Send a valid request over many connections at once."""
        allowed = frozenset({200, 429, 503})
        request = Hostile(self._valid, allowed, check=self._differs)
        await asyncio.gather(*(self.send(request) for _ in range(FLOOD)))

    def _differs(self, document: object) -> str:
        return "" if document == self._expected else "another translation"

    async def finish(self, most_growth: float, log: Path | None) -> None:
        """Check the server's own figures, and its log."""
        await asyncio.sleep(3)
        for name, most in (("t2t_requests_in_flight", 1), ("t2t_queue_sentences", 0)):
            if (found := await self.figure(name)) > most:
                self.failures.append(f"at the end, {name} is {found:.0f}")
        if failed := await self.figure("t2t_requests_total", code="500"):
            self.failures.append(f"{failed:.0f} answers of status 500")
        memory = await self.figure("process_resident_memory_bytes")
        self.growth = (memory - self._memory) / 1e6
        if self.growth > most_growth:
            self.failures.append(f"memory grew by {self.growth:.0f} MB")
        text = log.read_text(errors="replace") if log else ""
        if "Traceback" in text:
            place = text.index("Traceback")
            self.failures.append(f"the log has a traceback: {text[place:][:3000]}")


async def fuzz(fuzzer: Fuzzer, args: argparse.Namespace) -> None:
    """Run blocks until there were enough requests."""
    await fuzzer.prepare()
    number = args.first_block
    while fuzzer.requests < args.requests:
        await fuzzer.run(number, args.seed)
        number += 1
    await fuzzer.finish(args.most_growth, args.log)


def main() -> int:
    parser = argparse.ArgumentParser(description="Send hostile requests to a server.")
    parser.add_argument("--url", required=True, help="address of the running server")
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first_block", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=30.0, help="for a valid one")
    parser.add_argument("--max_body", type=int, default=1 << 20, help="its setting")
    parser.add_argument("--read_timeout", type=float, default=20.0, help="its setting")
    parser.add_argument("--most_growth", type=float, default=300.0, metavar="MB")
    parser.add_argument("--log", type=Path, help="the server's standard error")
    args = parser.parse_args()
    fuzzer = Fuzzer(args.url, args.seconds, args.max_body, args.read_timeout)
    start = time.monotonic()
    asyncio.run(fuzz(fuzzer, args))
    for failure in fuzzer.failures[:SHOWN]:
        print(f"failure: {failure}")
    counts = json.dumps({str(key): n for key, n in fuzzer.statuses.most_common()})
    print(
        f"{fuzzer.requests} requests, {counts}, slowest valid one "
        f"{fuzzer.slowest:.2f} s, memory {fuzzer.growth:+.0f} MB, "
        f"{len(fuzzer.failures)} failures, {time.monotonic() - start:.0f} s"
    )
    return 1 if fuzzer.failures else 0


if __name__ == "__main__":
    sys.exit(main())
