"""Significance tests of the difference between systems, by sacreBLEU."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest, Result

from t2t_repro.constants import AUTO_TOKENIZER
from t2t_repro.errors import UserError
from t2t_repro.text_tables import quantity
from t2t_repro.translation_scores import bleu_metric, chosen_tokenizer

BOOTSTRAP, RANDOMIZATION = "bootstrap", "approximate_randomization"
TESTS = (BOOTSTRAP, RANDOMIZATION)
TRIALS = 10_000  # sacreBLEU's default for approximate randomization
_ROUNDING = 1e-9  # rounding error of a score; far below any real difference


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The score of a system by one metric, compared with the baseline.

    Attributes:
        system: The name of the system.
        metric: "BLEU", "chrF2" or "TER".
        score: The score, 0 to 100; TER may be larger, and lower is better.
        p_value: Probability of so large a difference between systems that are equally
            good; None for the baseline itself.
        mean: Mean of the score over bootstrap resamples.
        confidence: Half of the 95 % confidence interval around `mean`.
        signature: Signature of sacreBLEU, including the test.
    """

    system: str
    metric: str
    score: float
    p_value: float | None
    mean: float
    confidence: float
    signature: str


def compare_translations(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    test: str = "bootstrap",
    samples: int = 0,
    tokenizer: str = AUTO_TOKENIZER,
    other_references: Sequence[Sequence[str]] = (),
) -> list[Comparison]:
    """Compare translations of the same sentences with those of a baseline.

    Koehn 2004 (bootstrap); Riezler and Maxwell 2005 (approximate randomization).

    Args:
        systems: Translations by the name of the system; the first is the baseline.
        references: One reference per sentence.
        test: One of `TESTS`.
        samples: Number of resamples or trials; 0 for sacreBLEU's defaults, 1,000
            resamples or 10,000 trials. The confidence intervals of approximate
            randomization always have 1,000 resamples.
        tokenizer: Tokenizer of BLEU, one of `constants.BLEU_TOKENIZERS`.
        other_references: Further references, in streams of one per sentence.

    Returns:
        One comparison per metric and system.

    Raises:
        UserError: If there is only a baseline or no sentence, or the numbers of
            sentences differ, or the tokenizer needs a package that is not installed.
    """
    streams = [list(stream) for stream in (references, *other_references)]
    _check(systems, streams)
    tokenizer = chosen_tokenizer(tokenizer, references)
    metrics = {
        "BLEU": bleu_metric(tokenizer, references=streams),
        "chrF2": CHRF(references=streams),
        "TER": TER(references=streams),
    }
    named: list[tuple[str, Sequence[str]]] = [
        (name, list(translations)) for name, translations in systems.items()
    ]
    resamples = samples if test == BOOTSTRAP else 0
    signatures, scores = PairedTest(named, metrics, None, "bs", resamples)()
    found = []
    for metric, by_system in scores.items():
        if metric == "System":  # the names
            continue
        if test == RANDOMIZATION:
            signatures[metric].update("ar", samples or TRIALS)
        baseline, *_ = results = cast("list[Result]", by_system)
        for (name, translations), result in zip(named, results, strict=True):
            if result is baseline:
                p_value = None
            elif result.score == baseline.score:
                # Differs from sacreBLEU, which may give it the smallest p-value.
                p_value = 1.0
            elif test == BOOTSTRAP:
                p_value = float(cast("float", result.p_value))
            else:
                pair = (named[0][1], translations)
                p_value = _randomization(metrics[metric], pair, samples or TRIALS)
            found.append(
                Comparison(
                    system=name,
                    metric=metric,
                    # sacreBLEU returns NumPy numbers, which JSON cannot hold.
                    score=float(result.score),
                    p_value=p_value,
                    mean=float(cast("float", result.mean)),
                    confidence=float(cast("float", result.ci)),
                    signature=str(signatures[metric]),
                )
            )
    return found


def _check(
    systems: Mapping[str, Sequence[str]], streams: Sequence[Sequence[str]]
) -> None:
    if len(systems) < 2 or not streams[0]:
        raise UserError(
            f"received {len(systems)} system(s) and "
            f"{quantity(len(streams[0]), 'reference')}, expected a baseline, a "
            "system to compare with it, and sentences."
        )
    for name, translations in systems.items():
        for references in streams:
            if len(translations) != len(references):
                raise UserError(
                    f"received {quantity(len(translations), 'translation')} in {name} "
                    f"and {quantity(len(references), 'reference')}, expected equal "
                    "numbers."
                )


def _randomization(
    metric: BLEU | CHRF | TER, pair: tuple[Sequence[str], Sequence[str]], trials: int
) -> float:
    """Return the p-value of two systems by approximate randomization.

    Each trial exchanges the translations of every second sentence, at random. The
    p-value is the share of trials whose difference is at least the true one.

    Differs from sacreBLEU, which draws the same trials and counts only larger
    differences: two systems that differ in one sentence, so that every trial has the
    true difference, would get the smallest p-value.

    Args:
        metric: Metric with its references.
        pair: Translations of the two systems.
        trials: Number of trials.
    """
    first, second = (
        np.array(metric._extract_corpus_statistics(side, None)) for side in pair
    )
    seed = os.environ.get("SACREBLEU_SEED", "12345")
    random = np.random.default_rng(None if seed.lower() == "none" else int(seed))
    kept = random.integers(2, size=(trials, len(first)), dtype=bool)

    def scores(totals: np.ndarray) -> np.ndarray:
        return np.array([metric._compute_score_from_stats(row).score for row in totals])

    def difference(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.abs(scores(one) - scores(other))

    drawn = difference(kept @ first + ~kept @ second, ~kept @ first + kept @ second)
    true = difference(first.sum(0)[None], second.sum(0)[None])
    # +1: Phipson and Smyth 2010; as sacreBLEU.
    return float((np.sum(drawn >= true - _ROUNDING) + 1) / (trials + 1))
