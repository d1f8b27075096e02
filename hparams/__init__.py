"""The catalogue of hparams sets, imported as `t2t_repro.hparams`.

A module of this folder registers named sets and does nothing else. A set is an instance
of `t2t_repro.settings.hparams.HParams`. Import siblings relatively and `t2t_repro`
absolutely.
"""

if __name__ != "t2t_repro.hparams":
    raise ImportError(
        f"Import the hparams sets as t2t_repro.hparams, not as {__name__}: a second "
        "name would register every set twice."
    )

# Module -> the features that its sets need.
MODULES = {
    "transformer_sets": (),
    "parsing_sets": (),
    "variation_sets": (),
    "weighted_sets": (),
}
