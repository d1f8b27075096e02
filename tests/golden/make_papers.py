"""Write `papers.json`: the figures that "Attention Is All You Need" prints.

The script reads the paper's LaTeX source. The source also has earlier versions of some
tables in comments, which it skips.

Usage: python -m tests.golden.make_papers attention-is-all-you-need.tex
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

RESULT = Path(__file__).with_name("papers.json")

# The columns of Table 3 that describe the model.
TABLE_3_CELLS = ("N", "d_model", "d_ff", "h", "d_k", "d_v", "P_drop", "eps_ls")


def figures(latex: str) -> dict[str, Any]:
    return {
        "table1": _table_1(latex),
        "table1 commented": _table_1_commented(latex),
        "section4": _section_4(latex),
        "table2": _table_2(latex),
        "table3": _table_3(latex),
        "table4": _table_4(latex),
        "attention_over_parameters": _attention_over_parameters(latex),
        "text": _text(latex),
    }


def _table_1(latex: str) -> list[dict[str, str]]:
    body = _tabular(latex, r"\label{tab:op_complexities} \begin{center} \vspace")
    # The row of the restricted layer follows a commented-out command on its line.
    orders = re.findall(
        r"(Self-Attention|Recurrent|Convolutional|Self-Attention \(restricted\)) *& "
        r"\$O\((.+?)\)\$ *& \$O\((.+?)\)\$ *& \$O\((.+)\)\$ *\\",
        body,
    )
    names = ("layer", "complexity", "sequential", "path")
    return [
        dict(zip(names, (layer, *map(_order, cells)), strict=True))
        for layer, *cells in orders
    ]


def _table_1_commented(latex: str) -> dict[str, list[str]]:
    """Return the orders of the rows in comments, by their first line in the source."""
    body = _tabular(latex, r"\label{tab:op_complexities} \begin{center} \vspace")
    rows: dict[str, list[str]] = {}
    for line in body.splitlines():
        if line.startswith("%") and not line.startswith(r"%\cmidrule"):
            layer, *orders = (cell.strip(" \\") for cell in line[1:].split("&"))
            formulas = [re.sub(r"^O\((.+)\)$", r"\1", x.strip("$")) for x in orders]
            number = 1 + latex[: latex.index(line)].count("\n")
            if layer not in [known for known, *_ in rows.values()]:
                rows[str(number)] = [layer, *map(_order, formulas)]
    return rows


def _section_4(latex: str) -> dict[str, str]:
    why = latex[latex.rindex("does not connect all pairs") :][:1_500]
    contiguous = re.search(
        r"\$O\((.+?)\)\$ convolutional layers in the case of contiguous", why
    )
    dilated = re.search(r"or \$O\((.+?)\)\$ in the case of dilated", why)
    separable = re.search(r"Separable convolutions.+?to \$O\((.+?)\)\$", why)
    return {
        "contiguous path": _order(contiguous[1]),
        "dilated path": _order(dilated[1]),
        "separable complexity": _order(separable[1]),
    }


def _table_2(latex: str) -> list[dict[str, Any]]:
    rows = []
    for cells in _rows(latex, r"\label{tab:wmt-results}"):
        if len(cells) < 5 or not any(map(_number, cells[1:])):
            continue
        # If a cell spans two columns, both languages have the same cost.
        costs = cells[4:] if len(cells) == 6 else [cells[4], cells[4]]
        values = map(_number, (cells[1], cells[2], *costs))
        names = ("en-de", "en-fr", "FLOPs en-de", "FLOPs en-fr")
        rows.append({"system": cells[0], **dict(zip(names, values, strict=True))})
    return rows


def _table_3(latex: str) -> list[dict[str, Any]]:
    rows = []
    for cells in _rows(latex, r"\label{tab:variations}"):
        if len(cells) < 5 or _number(cells[-2]) is None:
            continue
        *own, steps, perplexity, bleu, parameters = cells
        # Row (E) has one cell for all columns.
        described = own[1:] if len(own) == 9 else []
        changes = {
            name: _number(cell)
            for name, cell in zip(TABLE_3_CELLS, described, strict=False)
            if _number(cell) is not None
        }
        rows.append(
            {
                "cells": changes,
                "steps": int(steps.replace("K", "000")) if steps else None,
                "PPL": _number(perplexity),
                "BLEU": _number(bleu),
                "params": _number(parameters),
            }
        )
    return rows


def _table_4(latex: str) -> list[dict[str, Any]]:
    rows = []
    for cells in _rows(latex, r"\label{tab:parsing-results}"):
        if len(cells) == 3 and _number(cells[2]):
            names = ("system", "training", "F1")
            values = (cells[0], cells[1], _number(cells[2]))
            rows.append(dict(zip(names, values, strict=True)))
    return rows


def _attention_over_parameters(latex: str) -> list[dict[str, Any]]:
    names = ("d_model", "d_ff", "h_p", "d_pk", "d_pv", "n_p")
    rows = []
    for cells in _rows(latex, r"\label{tab:parameter_attention}"):
        if len(cells) != 11 or _number(cells[7]) is None:
            continue
        described = zip(names, map(_number, cells[1:7]), strict=True)
        rows.append(
            {
                "cells": {name: value for name, value in described if value},
                "PPL": _number(cells[7]),
                "BLEU": _number(cells[8]),
                "params": _number(cells[9]),
                "hours": float(cells[10].split(" hours")[0]),
            }
        )
    return rows


def _text(latex: str) -> dict[str, Any]:
    """Return the figures in the text of sections 5 and 6."""
    base = re.search(r"base models for a total of ([\d,]+) steps or (\d+) hours", latex)
    big = re.search(r"trained for ([\d,]+) steps \(([\d.]+) days\)", latex)
    averaged = re.search(
        r"averaging the last (\d+) checkpoints, which were written at (\d+)-minute "
        r"intervals\. For the big models, we averaged the last (\d+)",
        latex,
    )
    flops = re.search(
        r"values of ([\d.]+), ([\d.]+), ([\d.]+) and ([\d.]+) TFLOPS for "
        r"K80, K40, M40 and P100",
        latex,
    )
    vocabularies = re.search(
        r"vocabulary of (\d+)K tokens for the WSJ only setting and a vocabulary of "
        r"(\d+)K tokens",
        latex,
    )
    steps = [
        float(re.search(pattern, latex)[1])
        for pattern in (
            r"each training step took about ([\d.]+) seconds",
            r"step time was ([\d.]+) seconds",
        )
    ]
    pairs = [
        re.search(pattern, latex)[1]
        for pattern in (
            r"about ([\d.]+) million sentence pairs",
            r"consisting of (\d+)M sentences",
        )
    ]
    french = re.search(r"our big model achieves a BLEU score of \$([\d.]+)\$", latex)
    longer = re.search(r"step times to be about (\d+)\\% longer", latex)
    shared = re.search(r"shared source-target vocabulary of about (\d+) tok", latex)
    tokens = re.search(r"approximately (\d+) source tokens and (\d+) target", latex)
    return {
        "vocabulary": int(shared[1]),
        "tokens per batch": [int(tokens[1]), int(tokens[2])],
        "GPUs": int(re.search(r"one machine with (\d+) NVIDIA P100", latex)[1]),
        "base": {"steps": _whole(base[1]), "hours": float(base[2])},
        "big": {"steps": _whole(big[1]), "hours": 24 * float(big[2])},
        "averaged": {"base": int(averaged[1]), "big": int(averaged[3])},
        "minutes between checkpoints": int(averaged[2]),
        "step seconds": steps,
        "millions of pairs": pairs,
        "BLEU en-fr, big": french[1],
        "% longer steps of attention over parameters": int(longer[1]),
        "TFLOPS": dict(
            zip(("K80", "K40", "M40", "P100"), map(float, flops.groups()), strict=True)
        ),
        "parsing vocabularies": {
            "WSJ only": 1000 * int(vocabularies[1]),
            "semi-supervised": 1000 * int(vocabularies[2]),
        },
    }


def _rows(latex: str, label: str) -> list[list[str]]:
    r"""Return the cells of a table's lines; \\ ends a line and & a cell."""
    body = _tabular(latex, label).replace(r"\&", "and")
    return [
        [_plain(cell) for cell in line.split("&")] for line in re.split(r"\\\\", body)
    ]


def _tabular(latex: str, label: str) -> str:
    # Earlier versions of a table are in comments before the printed one.
    start = latex.rindex(label)
    return latex[start : latex.index(r"\end{tabular}", start)]


def _plain(cell: str) -> str:
    """Remove LaTeX's rules, citations and commands around a cell's content."""
    rules = r"\\(?:hline|specialrule|cmidrule|rule|citep?)(?:\{[^}]*\})*"
    cell = re.sub(rules, "", cell)
    cell = re.sub(r"\\multi(?:row|column)\{\w+\}\{[*c]\}\{(.*)\}", r"\1", cell)
    cell = re.sub(r"\\(?:textbf|boldmath|mathbf)\{?", "", cell)
    return cell.replace("$", "").replace("}", "").strip()


def _number(cell: str) -> float | None:
    if power := re.search(r"([\d.]+)\\cdot10\^\{(\d+)", cell):
        return float(f"{power[1]}e{power[2]}")
    return float(cell) if re.fullmatch(r"[\d.]+", cell) else None


def _order(formula: str) -> str:
    r"""Write `n^2 \cdot d` as "n^2 d"."""
    return re.sub(r" *\\cdot *", " ", formula)


def _whole(digits: str) -> int:
    return int(digits.replace(",", ""))


def golden_text(latex: str) -> str:
    return json.dumps(figures(latex), indent=1) + "\n"


def main(path: str) -> None:
    RESULT.write_text(golden_text(Path(path).read_text(encoding="utf-8")))


if __name__ == "__main__":
    main(*sys.argv[1:])
