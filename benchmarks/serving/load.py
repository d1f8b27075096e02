"""Measure a server's throughput and latency, and check all of its answers.

    python -m benchmarks.serving.load --sources sentences.en --expected sentences.de \
        --cores 0 --generator_cores 1 --json load.json \
        -- t2t serve --output_dir run --port 0

starts the command, sends every sentence with `POST /translate` from as many clients as
in `--clients` and compares the answers with the expected ones. Then wrk (Debian's
package `wrk`) sends the same requests as fast as they are answered, over connections
that are kept alive. `benchmarks.serving.reference` writes both files. Without
`--expected`, the answers to one client are the expected ones. The generator needs its
share of the processor: give it another core, or say that it shares them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.serving.reference import Expected
from benchmarks.serving.server_process import ServerProcess
from tests.support.raw_http import Connection, json_message

SCRIPT = Path(__file__).with_name("sentences.lua")
PATIENCE = 120  # seconds until an answer must be there
SHOWN = 5


def main() -> int:
    """Start a server, check it, measure it, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--expected", type=Path)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--seconds", type=int, default=30, help="per measurement")
    parser.add_argument("--fields", default='{"source": "en", "target": "de"}')
    parser.add_argument("--cores", help="those of the server, as 0,1")
    parser.add_argument("--generator_cores", help="those of wrk")
    parser.add_argument("--most_others", type=float, default=0.01, metavar="SHARE")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--log", type=Path, default=Path("server.log"))
    parser.add_argument("command", nargs="+", help="after --")
    args = parser.parse_args()
    fields = json.loads(args.fields)
    with ServerProcess(args.command, args.log, args.cores) as server:
        expected = read_expected(args.sources, args.expected, server.url, fields)
        checks = [
            check(server.url, expected, fields, clients) for clients in args.clients
        ]
        bodies = [json.dumps({"q": s, **fields}) for s in expected.sources]
        rows = [
            {"clients": clients, **found}
            for clients, found in zip(
                args.clients, measure(server.url, bodies, args), strict=True
            )
        ]
        result = {"checks": checks, "rows": rows, "rss_mb": round(server.rss_mb(), 1)}
        result["start_s"] = round(server.start_seconds, 1)
        result["exit_code"] = server.stop()
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    del result["checks"], result["rows"]
    print(json.dumps(result))
    return 0 if is_right(checks, rows, result, args.most_others) else 1


def read_expected(
    sources: Path, targets: Path | None, url: str, fields: dict
) -> Expected:
    """Read the expected answers, or ask for them one by one."""
    if targets is not None:
        return Expected(sources, targets)
    found = asyncio.run(
        ask_all(url, sources.read_text(encoding="utf-8").splitlines(), fields, 1)
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "targets"
        file.write_text("".join(f"{text}\n" for text in found), encoding="utf-8")
        return Expected(sources, file)


async def ask_all(
    url: str, sentences: Sequence[str], fields: dict, clients: int
) -> list[str]:
    """Return the translation of every sentence, or what was answered instead."""
    found = [""] * len(sentences)
    waiting = iter(range(len(sentences)))

    async def client() -> None:
        connection = await Connection.open(url)
        for index in waiting:
            request = json_message("/translate", {"q": sentences[index], **fields})
            try:
                answer = await asyncio.wait_for(connection.ask(request), PATIENCE)
            except (TimeoutError, ConnectionError) as error:
                found[index] = repr(error)
                connection.leave()
                connection = await Connection.open(url)
                continue
            if answer.status != 200:
                found[index] = f"status {answer.status}: {answer.body[:200]!r}"
            elif connection.unread():
                found[index] = "more than one answer"
            else:
                found[index] = answer.json()["translatedText"]
        connection.leave()

    await asyncio.gather(*(client() for _ in range(clients)))
    return found


def check(url: str, expected: Expected, fields: dict, clients: int) -> dict:
    """Compare the answers to all sentences, each asked for once."""
    found = asyncio.run(ask_all(url, expected.sources, fields, clients))
    kinds = [expected.judge(index, answer) for index, answer in enumerate(found)]
    counts = {"clients": clients, **Counter(kinds)}
    print(json.dumps(counts), flush=True)
    strange = [index for index, kind in enumerate(kinds) if kind != "same"]
    for index in strange[:SHOWN]:
        print(f"  {kinds[index]}: {expected.sources[index]!r} -> {found[index]!r}")
    return counts


def measure(url: str, bodies: list[str], args) -> Iterator[dict[str, float]]:
    """Run wrk once per number of clients, and yield what it measured."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write("".join(f"{body}\n" for body in bodies))
        file.flush()
        for clients in args.clients:
            cores = args.generator_cores
            ended = subprocess.run(
                [
                    *(["taskset", "-c", cores] if cores else []),
                    *("wrk", "--threads", "1", "--connections", str(clients)),
                    *("--duration", f"{args.seconds}s", "--timeout", f"{PATIENCE}s"),
                    *("--script", str(SCRIPT), f"{url}/translate", "--", file.name),
                ],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
            line = ended.stdout.partition("RESULT ")[2].splitlines()[0]
            found = json.loads(line)
            found["per_second"] = round(found["requests"] / found["seconds"], 1)
            print(json.dumps({"clients": clients, **found}), flush=True)
            yield found


def is_right(checks: list, rows: list, result: dict, most_others: float) -> bool:
    """Return whether all was answered, with the translation of its own sentence."""
    for counts in checks:
        others = counts.get("other", 0)
        total = others + counts.get("same", 0)
        if counts.get("mixed up") or others > most_others * total:
            return False
    broken = sum(row["statuses"] + row["broken"] for row in rows)
    return not broken and result["exit_code"] == 0


if __name__ == "__main__":
    sys.exit(main())
