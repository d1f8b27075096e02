from __future__ import annotations

import numpy as np
import pytest

from results.alignment import WordAlignment
from results.alignment_error import (
    AlignmentCase,
    alignment_cases,
    alignment_error_rate,
    alignment_errors,
)
from t2t_repro.features.attention_view.alignments import AlignmentHeads
from t2t_repro.features.attention_view.sentence_attention import Attention
from tests.support.word_attention import attention_of


def test_the_error_rate_is_that_of_och_and_ney():
    # |A| = 3, |S| = 2, |A and S| = 1, |A and P| = 2: 1 - 3/5.
    reference = WordAlignment(
        sure=frozenset({(0, 0), (1, 1)}), possible=frozenset({(0, 0), (1, 1), (2, 2)})
    )
    rate = alignment_error_rate([[(0, 0), (2, 2), (0, 1)]], [reference])
    assert rate == pytest.approx(0.4)


def referenced(case: AlignmentCase) -> Attention:
    """Return weights on the reference in layer 2, head 1, and elsewhere on word 1."""
    sources, targets = len(case.source.split()), len(case.target.split())
    memory = np.zeros((2, 2, targets + 1, sources + 1))
    memory[..., 0] = 1.0
    for source, target in case.reference.possible:
        memory[1, 0, target, source] = 2.0
    return attention_of(case.source, case.target, memory)


def test_links_of_the_reference_have_no_error_except_those_of_groups():
    cases = list(alignment_cases("dev", 30))
    by_source = {case.source: referenced(case) for case in cases}
    errors = alignment_errors(lambda source, target: by_source[source], cases)
    assert errors.best() == AlignmentHeads(2, (1,))
    # One link per German word misses a word of "garden door" or "in the".
    assert errors.rates[errors.best()] < 0.05
    assert errors.rates[AlignmentHeads(1, (1,))] > 0.8
    assert 0.3 < errors.diagonal < 0.7


def test_the_table_has_a_row_per_layer_and_position_and_a_column_per_head():
    cases = list(alignment_cases("dev", 3))
    by_source = {case.source: referenced(case) for case in cases}
    errors = alignment_errors(lambda source, target: by_source[source], cases)
    header, *rows = errors.rows()
    assert header[2:] == ["head 1", "head 2", "mean of heads"]
    assert [row[:2] for row in rows] == [
        ["1", "predicted"],
        ["1", "read"],
        ["2", "predicted"],
        ["2", "read"],
    ]
    rate = errors.rates[AlignmentHeads(2, (1,))]
    assert rows[2][2] == f"{100 * rate:.1f}"
