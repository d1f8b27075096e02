"""Is one set of translations better than another, or is it chance? By sacreBLEU."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import cast

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest, Result

from t2t_repro.errors import UserError

# Name -> sacreBLEU's.
TESTS = {"bootstrap": "bs", "approximate_randomization": "ar"}


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A system's score by a metric, and its difference from the baseline.

    Attributes:
        system: its name.
        metric: "BLEU" or "chrF2".
        score: 0 to 100.
        p_value: chance of so large a difference between systems that are equally
            good; None for the baseline itself.
        confidence: half of the 95 % interval, by bootstrap alone.
        signature: sacreBLEU's, the test included.
    """

    system: str
    metric: str
    score: float
    p_value: float | None
    confidence: float | None
    signature: str


def compare_translations(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    test: str = "bootstrap",
    samples: int = 0,
) -> list[Comparison]:
    """Compares translations of the same sentences with those of a baseline.

    Koehn 2004 (bootstrap); Riezler and Maxwell 2005 (approximate randomisation).

    Args:
        systems: translations by the system's name; the first one is the baseline.
        references: one reference for each sentence.
        test: one of `TESTS`.
        samples: resamples or trials; 0 = sacreBLEU's 1,000 or 10,000.

    Raises:
        UserError: if there is no system beside the baseline, there is no sentence, or
            the numbers of sentences differ.
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
                f"{len(references)} references, expected as many of one as of the "
                "other."
            )
    references, baseline = list(references), list(next(iter(systems.values())))
    metrics = {
        "BLEU": BLEU(references=[references]),
        "chrF2": CHRF(references=[references]),
    }
    named: list[tuple[str, Sequence[str]]] = [
        (name, list(translations)) for name, translations in systems.items()
    ]
    run = PairedTest(named, metrics, None, TESTS[test], samples)
    signatures, scores = run()
    return [
        Comparison(
            system=name,
            metric=metric,
            # sacreBLEU's are NumPy's, which JSON cannot hold.
            score=float(found.score),
            p_value=_p_value(found, list(systems[name]) == baseline),
            confidence=None if found.ci is None else float(found.ci),
            signature=str(signatures[metric]),
        )
        for metric in metrics
        for name, found in zip(
            systems, cast("list[Result]", scores[metric]), strict=True
        )
    ]


def _p_value(found: Result, same_as_baseline: bool) -> float | None:
    """Take the p-value, which sacreBLEU makes its smallest where nothing differs."""
    if found.p_value is None:
        return None
    # Differs from sacreBLEU: it counts resamples that differ by more than zero, and
    # calls equal translations significantly different.
    return 1.0 if same_as_baseline else float(found.p_value)
