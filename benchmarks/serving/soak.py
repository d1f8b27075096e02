"""Send a server more than an hour of mixed requests, and account for every one.

    python -m benchmarks.serving.soak --sources sentences.en --expected sentences.de \
        --rate 70 --minutes 60 --cores 0 --json soak.json \
        -- t2t serve --model en-de=run --port 8000 --log_requests

Requests arrive at random times (a Poisson process), whether or not earlier ones are
answered: single sentences, texts of several sentences, lists, and requests of
TensorFlow Serving's interface. `--rate` counts sentences per second. One client in a
hundred closes its connection before the answer. In the middle, the server is stopped by
SIGTERM and started again; requests that are refused in between are sent again. Each
answer must be the translation of its own request, and the log of the server must have
as many answers as the clients.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.serving.reference import Expected
from benchmarks.serving.server_process import ServerProcess
from tests.support.raw_http import Answer, Connection, NoAnswer, json_message

LEAVING = 0.01  # share of the clients that leave
MODEL = "en-de"
PATIENCE = 100.0  # seconds until a client gives up
EVERY = 10.0  # seconds between two samples
LOGGED = re.compile(r"^POST '.*' (\d+) [\d,]+ ms", re.MULTILINE)


class Request:
    """A request: its bytes, the number of its sentences, and the right answer."""

    def __init__(
        self, path: str, body: dict, size: int, right: Callable[[Any], bool]
    ) -> None:
        self.data = json_message(path, body, "Connection: close\r\n")
        self.size, self.right = size, right


def random_request(expected: Expected, draw: random.Random) -> Request:
    """Return a request of a random kind."""
    kind = draw.choices(("one", "text", "list", "rows"), (70, 12, 10, 8))[0]
    count = 1 if kind == "one" else draw.randint(2, 8)
    chosen = draw.sample(range(len(expected.sources)), count)
    sources = [expected.sources[n] for n in chosen]
    targets = [expected.targets[n] for n in chosen]
    if kind == "rows":
        path = f"/v1/models/{MODEL}:predict"

        def rows_are_right(answer: Any) -> bool:
            return [row["outputs"] for row in answer["predictions"]] == targets

        return Request(path, {"instances": sources}, count, rows_are_right)
    q: Any = sources if kind == "list" else sources[0]
    right: Any = targets if kind == "list" else targets[0]
    if kind == "text":
        spaces = draw.choices((" ", "\n", "\n\n  ", "\r\n"), k=count - 1)
        q, right = (
            "".join(map("".join, zip(texts, [*spaces, ""], strict=True)))
            for texts in (sources, targets)
        )
    body = {"q": q, "model": MODEL}
    return Request(
        "/translate", body, count, lambda answer: answer["translatedText"] == right
    )


class Soak:
    """Clients of a server, and what became of their requests.

    Args:
        server: The server.
        seed: Seed of the requests.
    """

    def __init__(self, server: ServerProcess, seed: int) -> None:
        self.server = server
        self.counts: Counter[str] = Counter()
        self.latencies: list[float] = []  # seconds
        self.samples: list[dict[str, float]] = []
        self.strange: list[str] = []
        self._draw = random.Random(seed)
        self._start = time.monotonic()

    async def client(self, request: Request, leaves_after: float | None) -> None:
        """Send a request until the server accepts it, and judge the answer."""
        connection = await self._connect()
        start = time.monotonic()
        try:
            if leaves_after is not None:
                await connection.send(request.data)
                await asyncio.sleep(leaves_after)
                kind = "left after the answer" if connection.unread() else "left"
                self.counts[kind] += 1
                return
            answer = await asyncio.wait_for(connection.ask(request.data), PATIENCE)
            self.latencies.append(time.monotonic() - start)
            self.counts[self._judge(request, answer, connection)] += 1
        except (TimeoutError, NoAnswer, ValueError, OSError) as error:
            self.counts["lost"] += 1
            self.strange.append(f"{start - self._start:.1f} s: {error!r}")
        finally:
            connection.leave()

    async def _connect(self) -> Connection:
        while True:
            try:
                return await Connection.open(self.server.url)
            except OSError:
                self.counts["refused, sent again"] += 1
                await asyncio.sleep(0.5)

    def _judge(self, request: Request, answer: Answer, connection: Connection) -> str:
        if answer.status != 200:
            return f"status {answer.status}"
        if connection.unread():
            return "answered twice"
        if request.right(answer.json()):
            return "right"
        self.strange.append(f"{request.data[-300:]!r} -> {answer.body[:300]!r}")
        return "other"

    async def send_all(self, expected: Expected, rate: float, end: float) -> None:
        """Send requests at random times until the end."""
        clients = set()
        next_at = time.monotonic()
        while time.monotonic() < end:
            request = random_request(expected, self._draw)
            next_at += self._draw.expovariate(rate / request.size)
            await asyncio.sleep(max(0.0, next_at - time.monotonic()))
            leaves = self._draw.random() < LEAVING
            after = self._draw.uniform(0, 0.5) if leaves else None
            clients.add(task := asyncio.ensure_future(self.client(request, after)))
            task.add_done_callback(clients.discard)
            self.counts["sent"] += 1
        await asyncio.gather(*clients)

    async def sample(self) -> None:
        """Record the memory of the server until it is cancelled."""
        while True:
            now = time.monotonic() - self._start
            try:
                self.samples.append({"seconds": now, "rss_mb": self.server.rss_mb()})
            except Exception:  # between two servers
                self.samples.append({"seconds": now})
            await asyncio.sleep(EVERY)

    async def restart(self, at: float, start: Callable[[], ServerProcess]) -> int:
        """Stop the server at a time, start it again, and return the exit code."""
        await asyncio.sleep(max(0.0, at - time.monotonic()))
        code = await asyncio.to_thread(self.server.stop)
        self.server = await asyncio.to_thread(start)
        return code


def logged_answers(log: Path) -> dict[str, int]:
    """Return the number of requests by code in a server's log."""
    return dict(Counter(LOGGED.findall(log.read_text(encoding="utf-8"))))


def percentiles(latencies: list[float]) -> dict[str, float]:
    """Return p50, p95 and p99 of seconds, in milliseconds."""
    ordered = sorted(latencies)
    places = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}
    return {
        n: round(1e3 * ordered[int(p * len(ordered))], 1) for n, p in places.items()
    }


async def run(args: argparse.Namespace, start: Callable[[], ServerProcess]) -> dict:
    """Soak a server, and return what was found."""
    expected = Expected(args.sources, args.expected)
    soak = Soak(await asyncio.to_thread(start), args.seed)
    begin = time.monotonic()
    sampling = asyncio.ensure_future(soak.sample())
    middle = asyncio.ensure_future(soak.restart(begin + 30 * args.minutes, start))
    await soak.send_all(expected, args.rate, begin + 60 * args.minutes)
    exit_codes = [await middle, await asyncio.to_thread(soak.server.stop)]
    sampling.cancel()
    return {
        "rate": args.rate,
        "counts": dict(soak.counts),
        "exit_codes": exit_codes,
        "logged": logged_answers(args.log),
        **percentiles(soak.latencies),
        "strange": soak.strange[:20],
        "samples": soak.samples,
    }


def main() -> int:
    """Soak a server, print the counts, and fail if a request is unaccounted for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--expected", type=Path, required=True)
    parser.add_argument(
        "--rate", type=float, required=True, help="sentences per second"
    )
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cores", help="those of the server, as 0,1")
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--log", type=Path, default=Path("server.log"))
    parser.add_argument("command", nargs="+", help="after --")
    args = parser.parse_args()
    args.log.unlink(missing_ok=True)
    result = asyncio.run(
        run(args, lambda: ServerProcess(args.command, args.log, args.cores))
    )
    args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    shown = {n: v for n, v in result.items() if n != "samples"}
    print(json.dumps(shown, indent=1))
    counts = result["counts"]
    answers = counts["right"] + counts.get("other", 0)
    logged = result["logged"]
    left = counts.get("left", 0) + counts.get("left after the answer", 0)
    served = logged.get("200", 0) + logged.get("499", 0)
    is_complete = served == answers + left and set(logged) <= {"200", "499"}
    few_others = counts.get("other", 0) <= 0.01 * answers
    return 0 if is_complete and few_others and not any(result["exit_codes"]) else 1


if __name__ == "__main__":
    raise SystemExit(main())
