"""Significance tests of the difference between systems, by sacreBLEU."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import cast

from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest, Result

from t2t_repro.errors import UserError

# Name of a test -> sacreBLEU's name for it.
TESTS = {"bootstrap": "bs", "approximate_randomization": "ar"}
# Resamples for confidence intervals. The bootstrap test has its own; for the other
# test, 0 means sacreBLEU's default number.
_CONFIDENCE_RESAMPLES = {"bootstrap": -1, "approximate_randomization": 0}


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
) -> list[Comparison]:
    """Compare translations of the same sentences with those of a baseline.

    Koehn 2004 (bootstrap); Riezler and Maxwell 2005 (approximate randomisation).

    Args:
        systems: Translations by the name of the system; the first is the baseline.
        references: One reference per sentence.
        test: A key of `TESTS`.
        samples: Number of resamples or trials; 0 for sacreBLEU's defaults, 1,000
            resamples or 10,000 trials. The confidence intervals of approximate
            randomisation always have 1,000 resamples.

    Returns:
        One comparison per metric and system.

    Raises:
        UserError: If there is only a baseline or no sentence, or the numbers of
            sentences differ.
    """
    if len(systems) < 2 or not references:
        raise UserError(
            f"received {len(systems)} system(s) and {len(references)} references, "
            "expected a baseline, a system to compare with it, and sentences."
        )
    for name, translations in systems.items():
        if len(translations) != len(references):
            raise UserError(
                f"received {len(translations)} translations in {name} and "
                f"{len(references)} references, expected equal numbers."
            )
    references, baseline = list(references), list(next(iter(systems.values())))
    metrics = {
        "BLEU": BLEU(references=[references]),
        "chrF2": CHRF(references=[references]),
        "TER": TER(references=[references]),
    }
    named: list[tuple[str, Sequence[str]]] = [
        (name, list(translations)) for name, translations in systems.items()
    ]
    run = PairedTest(
        named, metrics, None, TESTS[test], samples, _CONFIDENCE_RESAMPLES[test]
    )
    signatures, scores = run()
    return [
        Comparison(
            system=name,
            metric=metric,
            # sacreBLEU returns NumPy numbers, which JSON cannot hold.
            score=float(found.score),
            p_value=_p_value(found, list(systems[name]) == baseline),
            mean=float(cast("float", found.mean)),
            confidence=float(cast("float", found.ci)),
            signature=str(signatures[metric]),
        )
        for metric in metrics
        for name, found in zip(
            systems, cast("list[Result]", scores[metric]), strict=True
        )
    ]


def _p_value(found: Result, same_as_baseline: bool) -> float | None:
    """Return the p-value, which is 1 for translations equal to the baseline's."""
    if found.p_value is None:
        return None
    # Differs from sacreBLEU: it counts resamples that differ by more than zero, so
    # equal translations get the smallest p-value.
    return 1.0 if same_as_baseline else float(found.p_value)
