"""tensor2tensor's commands, models, vocabularies, data and packages.

Each old command prints the equivalent `t2t` command, and runs it. The tables of
flags, sets and problems are data; `docs/from_tensor2tensor.md` shows them. A package
written for tensor2tensor runs on stand-ins for its modules.
"""

from t2t_repro.features import Feature

_VOCABULARIES = "t2t_repro.features.tensor2tensor.token_encoders"

FEATURE = Feature(
    packages=("t2t_repro.features.tensor2tensor.package_stand_ins",),
    prepared_data=("t2t_repro.features.tensor2tensor.old_data",),
    imports={
        "tensor2tensor": "t2t_repro.features.tensor2tensor.command_import_tensor2tensor"
    },
    tokenizers={
        ".subwords": _VOCABULARIES,
        ".tokens": _VOCABULARIES,
        ".bytes": _VOCABULARIES,
    },
)
