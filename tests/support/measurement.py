"""A measurement for the tests of the page of results."""

from __future__ import annotations

from results.measurements import Measurement

MEASUREMENT = Measurement(
    name="a_name",
    source="a test",
    commit="abc1234",
    date="2026-11-23",
    command="t2t train",
    hardware="2 x CPU",
    signature="nrefs:1",
    numbers={"bleu": 12.5},
    table={
        "columns": [
            {"heading": "steps", "format": ",d"},
            {"heading": "nll", "format": ".2f"},
        ],
        "rows": [[1000, 3.125], [2000, None]],
    },
)
