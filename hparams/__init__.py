"""The catalogue of hparams sets, imported as `t2t_repro.hparams`.

A module here registers named sets and does nothing else; the class of a set is
`t2t_repro.settings.hparams.HParams`. Siblings import each other relatively, the core
absolutely.
"""

if __name__ != "t2t_repro.hparams":
    raise ImportError(
        f"Import the hparams sets as t2t_repro.hparams, not as {__name__}: a second "
        "name would register every set twice."
    )

MODULES = ("transformer", "parsing", "variations", "weighted")
