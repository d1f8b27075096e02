"""Translate sentences as `t2t decode` does: what a server must answer, and how fast.

    python -m benchmarks.serving.reference --output_dir run \
        --decode_from_file sentences.en --decode_to_file sentences.de

takes the flags of `t2t decode`, writes the translations, and prints a line of JSON: the
sentences per second of all lines together, in a process that has translated them once,
and the seconds of single sentences, each alone. `--select test.en` first writes those
lines of a file to `--decode_from_file` that are one sentence and are not repeated, so
that every answer belongs to one line.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

ALONE = 200  # sentences that are translated one by one
_INNER_END = re.compile(r"[.!?:;…]\W*\s")


def single_sentences(lines: Sequence[str]) -> list[str]:
    """Return the lines that every splitter of text into sentences leaves whole."""
    stripped = (line.strip() for line in lines)
    kept = [s for s in stripped if s[:1].isupper() and s[-1:] in (".", "!", "?")]
    return [line for line in dict.fromkeys(kept) if not _INNER_END.search(line)]


class Expected:
    """The translation that a server must give to each sentence.

    Another batch may round differently, so that another, equally probable translation
    is found. If an answer is the translation of another sentence, answers were mixed
    up.

    Args:
        sources: File of sentences.
        targets: File of their translations.

    Attributes:
        sources: The sentences.
        targets: Their translations.
    """

    def __init__(self, sources: Path, targets: Path) -> None:
        self.sources = sources.read_text(encoding="utf-8").splitlines()
        self.targets = targets.read_text(encoding="utf-8").splitlines()
        if len(self.sources) != len(self.targets):
            raise SystemExit(f"{sources} and {targets} have other numbers of lines")
        self._all = set(self.targets)

    def judge(self, index: int, answer: object) -> str:
        """Return "same", "other" or "mixed up" for the answer to a sentence."""
        if answer == self.targets[index]:
            return "same"
        return "mixed up" if answer in self._all else "other"


def seconds_of(translator, sentences: Sequence[str]) -> tuple[float, list]:
    """Return how long a translation takes, and its hypotheses."""
    start = time.perf_counter()
    found = translator.translate(sentences)
    return time.perf_counter() - start, found


def main() -> None:
    """Translate twice, then one by one, and print the speed of the later times."""
    from t2t_repro.cli import decode
    from t2t_repro.cli.engines import load_translating_system
    from t2t_repro.settings.decode_hparams import DecodeHParams

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    decode.add_flags(parser)
    parser.add_argument("--select", type=Path, metavar="FILE")
    args = parser.parse_args()
    sources, targets = Path(args.decode_from_file[0]), Path(args.decode_to_file[0])
    if args.select:
        lines = single_sentences(args.select.read_text(encoding="utf-8").splitlines())
        sources.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    sentences = sources.read_text(encoding="utf-8").splitlines()
    hparams = DecodeHParams().parse_for("decode", args.decode_hparams)
    system = load_translating_system(args, hparams, parallel_batches=True)
    translator = system.translator(system.with_problem_defaults(hparams))
    first, found = seconds_of(translator, sentences)
    lines = [decode.text_line(hypotheses, hparams) for hypotheses in found]
    targets.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    later = seconds_of(translator, sentences)[0]
    some = sentences[:: max(1, len(sentences) // ALONE)][:ALONE]
    for _ in range(2):
        alone = sorted(seconds_of(translator, [sentence])[0] for sentence in some)
    result = {
        "sentences": len(sentences),
        "first_s": first,
        "sentences_per_second": len(sentences) / later,
        "alone_median_s": statistics.median(alone),
        "alone_p95_s": alone[int(0.95 * len(alone))],
    }
    print(json.dumps({name: round(value, 4) for name, value in result.items()}))


if __name__ == "__main__":
    main()
