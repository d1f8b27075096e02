from __future__ import annotations

from t2t_repro.features.scores.command_compare import (
    comparison_lines,
    comparison_markdown,
)
from t2t_repro.features.scores.significance import Comparison


def comparisons(*systems):
    """Return comparisons whose numbers all differ; the second system is better."""
    p_values = {0: None, 1: 0.0123, 2: 0.4567}
    return [
        Comparison(
            system=system,
            metric=metric,
            score=10.0 * row + column + 0.25,
            p_value=p_values[row],
            mean=90.0,
            confidence=row + column / 4 + 0.5,
            signature=f"signature of {metric}",
        )
        for column, metric in enumerate(("BLEU", "TER"))
        for row, system in enumerate(systems)
    ]


def test_every_number_is_in_its_row_and_column():
    assert comparison_lines(comparisons("base.de", "new.de", "other.de"))[:4] == [
        "system            BLEU        p           TER        p",
        "base.de    0.25 ± 0.50        -   1.25 ± 0.75        -",
        "new.de    10.25 ± 1.50  0.0123*  11.25 ± 1.75  0.0123*",
        "other.de  20.25 ± 2.50  0.4567   21.25 ± 2.75  0.4567",
    ]


def test_notes_name_the_baseline_and_all_signatures():
    text = "\n".join(comparison_lines(comparisons("base.de", "new.de")))
    assert "difference from base.de by chance; * p < 0.05" in text
    assert "BLEU: signature of BLEU" in text
    assert "TER: signature of TER" in text
    assert "A lower TER is better" in text


def test_several_comparisons_have_a_corrected_limit():
    assert "Bonferroni" not in "\n".join(comparison_lines(comparisons("a", "b")))
    lines = comparison_lines(comparisons("a", "b", "c"))
    assert any("2 comparisons: by Bonferroni, look for p < 0.0250" in x for x in lines)


def test_long_names_are_numbered_and_listed():
    long = "runs/a_long_name/of_a_folder/translations.de"
    lines = comparison_lines(comparisons("base.de", long))
    assert lines[1].startswith("[1] ")
    assert lines[2].startswith("[2] ")
    assert lines[4:6] == ["[1] base.de", f"[2] {long}"]
    assert max(map(len, lines)) <= 100


def test_markdown_has_the_same_cells_and_no_lost_stars():
    lines = comparison_markdown(comparisons("base|de", "new.de"))
    assert lines[:4] == [
        "| system | BLEU | p | TER | p |",
        "| --- | ---: | ---: | ---: | ---: |",
        r"| base\|de | 0.25 ± 0.50 | - | 1.25 ± 0.75 | - |",
        "| new.de | 10.25 ± 1.50 | 0.0123* | 11.25 ± 1.75 | 0.0123* |",
    ]
    assert any(r"\* p < 0.05" in line for line in lines)
