"""An example of a result."""

from __future__ import annotations

from t2t_repro.features.reproduction.result_files import Result

RESULT = Result(
    system="transformer_base_a_h1",
    scale="small",
    seed=1,
    scores={"BLEU (dev)": 30.0, "perplexity (dev)": 8.0},
    signature="nrefs:1",
    steps=3_000,
    seconds=600.0,
    parameters=1,
    commands=("t2t train", "t2t evaluate"),
    data={"train.en": "00"},
    hardware="2 x CPU",
    versions={"keras": "3.15"},
)
