"""An example of a curve."""

from __future__ import annotations

from results.curves import Curve

CURVE = Curve(
    name="shared",
    seed=1,
    problem="text_pairs",
    hparams_set="weighted_transformer_base",
    settings={},
    data_digest="d",
    versions={},
    steps=(10, 20),
    nll=(3.0, 2.5),
    branches={
        f"encoder/layer_0/{kind}/{number}": (0.5, 0.25)
        for kind in ("kappa", "alpha")
        for number in range(2)
    },
    seconds=1.0,
)
