"""Every published number against the paper's own LaTeX source."""

from __future__ import annotations

import re

import pytest

from t2t_repro import published
from t2t_repro.models.sizes import wall_time_flops

LABELS = {
    "table1": "tab:op_complexities",
    "table2": "tab:wmt-results",
    "table3": "tab:variations",
    "table4": "tab:parsing-results",
    "aop": "tab:parameter_attention",
}


@pytest.fixture(scope="module")
def latex(repository):
    path = repository.parent / "shared/papers/attention-is-all-you-need.tex"
    if not path.exists():
        pytest.skip(f"{path} is not there: the paper's LaTeX source")
    return path.read_text(encoding="utf-8")


def rows_of(latex, label):
    """The cells of a table's lines, without LaTeX's commands."""
    # Tables that were given up stand in comments before those that were printed.
    start = latex.rindex(f"\\label{{{label}}}")
    body = latex[start : latex.index("\\end{tabular}", start)]
    return [
        [plain(cell) for cell in line.split("&")]
        for line in re.sub(r"\\&", " and ", body).split("\\\\")
    ]


def plain(cell):
    cell = re.sub(r"\\multi(?:row|column)\{\w+\}\{[*c]\}\{(.*)\}", r"\1", cell)
    cell = re.sub(r"\\(?:textbf|boldmath|mathbf)\{?", "", cell)
    return cell.replace("$", "").replace("}", "").strip()


def number(cell):
    """A number of a cell, None where it is empty."""
    if power := re.search(r"([\d.]+)\\cdot10\^\{(\d+)", cell):
        return float(power[1]) * 10 ** int(power[2])
    return float(cell) if re.fullmatch(r"[\d.]+", cell) else None


def test_table_3(latex):
    rows = [
        tuple(number(cell) for cell in cells[-3:])
        for cells in rows_of(latex, LABELS["table3"])
        if len(cells) >= 5 and number(cells[-2]) and number(cells[-3])
    ]
    expected = [
        (row.perplexity, row.bleu, row.parameters)
        for row in (*published.TABLE_3, published.TABLE_3_BIG)
    ]
    assert rows == expected


def test_table_3s_changes(latex):
    """The cells N, d_model, d_ff, h, d_k, d_v, P_drop, eps_ls of each row."""
    names = [
        "num_hidden_layers",
        "hidden_size",
        "filter_size",
        "num_heads",
        "d_k",
        "d_v",
        "layer_prepostprocess_dropout",
        "label_smoothing",
    ]
    table = [c for c in rows_of(latex, LABELS["table3"]) if len(c) == 13]
    printed = [
        {
            n: number(c)
            for n, c in zip(names, cells[1:9], strict=True)
            if number(c) is not None
        }
        for cells in table
        if number(cells[-2])
    ]
    rows = [row for row in published.TABLE_3 if row.changes and row.row != "e_learned"]
    assert len(printed) == 1 + len(rows) + 1
    for cells, row in zip(printed[1:-1], rows, strict=True):
        changes = dict(row.changes)
        if "attention_key_channels" in changes:
            changes["d_k"] = changes.pop("attention_key_channels") / 8
        own = {name: value for name, value in cells.items() if name in changes}
        assert own == changes, row.label
        # Depths that follow from the others are printed too.
        assert set(cells) - set(own) <= {"d_k", "d_v"}, row.label


def test_attention_over_parameters(latex):
    rows = [
        tuple(number(cell) for cell in cells[-4:-1])
        for cells in rows_of(latex, LABELS["aop"])
        if len(cells) >= 5 and number(cells[-3])
    ]
    base, *_ = published.TABLE_3
    expected = [
        (row.perplexity, row.bleu, row.parameters)
        for row in (base, *published.ATTENTION_OVER_PARAMETERS)
    ]
    assert rows == expected
    hours = re.findall(r"(\d+) hours", latex[latex.rindex(LABELS["aop"]) :][:2_000])
    assert [int(h) for h in hours] == [12, 16, 16]


def test_table_2(latex):
    cells = [c for c in rows_of(latex, LABELS["table2"]) if len(c) >= 5]
    found = {}
    for row in cells:
        name = re.sub(r"\\citep.*", "", row[0])
        name = re.sub(r"\\(?:hline|specialrule|cmidrule).*?(?=[A-Z])", "", name)
        found[name.strip()] = [number(cell) for cell in row[1:]]
    for system in published.TABLE_2:
        matches = [v for name, v in found.items() if name.endswith(system.system)]
        assert matches, system.system
        values = matches[0]
        assert values[:2] == [system.ende, system.enfr], system.system
        flops = {value for value in values[2:] if value is not None}
        expected = {system.ende_flops, system.enfr_flops} - {None}
        assert sorted(flops) == pytest.approx(sorted(expected)), system.system


def test_table_4(latex):
    rows = [
        (cells[1], number(cells[2]))
        for cells in rows_of(latex, LABELS["table4"])
        if len(cells) == 3 and number(cells[2])
    ]
    assert rows == [(row.training, row.f1) for row in published.TABLE_4]


def test_table_1(latex):
    # The column of complexities, in the paper's own notation.
    start = latex.rindex("\\label{tab:op_complexities} \\begin{center} \\vspace")
    body = latex[start : start + 2_000]
    found = re.findall(
        r"(Self-Attention|Recurrent|Convolutional|Self-Attention \(restricted\)) *& "
        r"\$O\((.+?)\)\$ *& \$O\((.+?)\)\$ *& \$O\((.+)\)\$",
        body,
    )
    printed = [
        (name, *(re.sub(r" *\\cdot *", " ", cell) for cell in cells))
        for name, *cells in found
        if "separable" not in name
    ][: len(published.TABLE_1)]
    expected = [
        (row.layer, row.complexity, row.sequential, row.path)
        for row in published.TABLE_1
    ]
    assert printed == expected


def test_section_4_on_kernels_without_gaps_and_on_separable_ones(latex):
    why = latex[latex.rindex("does not connect all pairs") :][:1_500]
    assert "$O(n/k)$ convolutional layers in the case of contiguous kernels" in why
    found = re.findall(r"\$O\(([^$]+)\)\$", why)
    orders = [re.sub(r" *\\cdot *", " ", order) for order in found]
    assert published.CONTIGUOUS.path == published.SEPARABLE.path == orders[0]
    assert published.SEPARABLE.complexity in orders


def test_the_papers_estimate_of_its_training_cost():
    """12 hours, or 3.5 days, on 8 GPUs of 9.5 TFLOPS sustained (`FLOPs by hours`)."""
    base, big = published.TABLE_3[0], published.TABLE_3_BIG
    for row, system in ((base, published.TABLE_2[-2]), (big, published.TABLE_2[-1])):
        assert system.train_hours == row.train_hours
        flops = wall_time_flops(row.train_hours, 8, 9.5e12)
        assert system.ende_flops == pytest.approx(flops, rel=0.01)
