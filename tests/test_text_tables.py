from __future__ import annotations

import pytest

from t2t_repro.text_tables import aligned, fitted, markdown, quantity

ROWS = [["name", "size", "note"], ["a", "1,024", "x"], ["long name", "8", ""]]


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 lines"), (1, "1 line"), (2000, "2,000 lines")]
)
def test_a_quantity_has_the_number_of_its_noun(number, text):
    assert quantity(number, "line") == text


def test_a_quantity_may_have_another_plural():
    assert quantity(1, "batch", "batches") == "1 batch"
    assert quantity(2, "batch", "batches") == "2 batches"


def test_columns_are_as_wide_as_their_widest_cell():
    assert aligned(ROWS) == [
        "name       size   note",
        "a          1,024  x",
        "long name  8",
    ]


def test_chosen_columns_are_aligned_to_the_right():
    assert aligned(ROWS, right={1}) == [
        "name        size  note",
        "a          1,024  x",
        "long name      8",
    ]


def test_no_rows_give_no_lines():
    assert aligned([]) == []


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="shorter"):
        aligned([["a", "b"], ["c"]])
    with pytest.raises(ValueError, match=r"lengths \[2, 1\]"):
        markdown([["a", "b"], ["c"]])


def test_markdown_has_a_rule_below_the_headings():
    assert markdown(ROWS, right={1}) == [
        "| name | size | note |",
        "| --- | ---: | --- |",
        "| a | 1,024 | x |",
        "| long name | 8 |  |",
    ]


def test_markdown_escapes_what_would_end_a_cell():
    assert markdown([["a|b"]])[0] == r"| a\|b |"


def test_markdown_without_headings_is_refused():
    with pytest.raises(ValueError, match="headings"):
        markdown([])


SETTINGS = [
    ["name", "meaning"],
    ["alpha", "the weight of the length penalty"],
    ["b", ""],
]


def test_the_last_column_is_broken_at_the_width():
    assert fitted(SETTINGS, 32) == [
        "name   meaning",
        "alpha  the weight of the length",
        "       penalty",
        "b",
    ]
    assert fitted(SETTINGS, 100) == aligned(SETTINGS)


def test_a_last_column_without_room_is_below_the_others():
    assert fitted(SETTINGS, 24) == [
        "name",
        "    meaning",
        "alpha",
        "    the weight of the",
        "    length penalty",
        "b",
    ]


def test_wide_characters_take_two_columns():
    rows = [("source", "房子是红色的。", "7"), ("target", "the house is red.", "17")]
    assert aligned(rows, right=(2,)) == [
        "source  房子是红色的。      7",
        "target  the house is red.  17",
    ]


def test_a_sentence_of_wide_characters_is_broken_at_the_width():
    assert fitted([("a", "房子是红色的" * 5)], 28) == [
        "a  房子是红色的房子是红色的",
        "   房子是红色的房子是红色的",
        "   房子是红色的",
    ]
