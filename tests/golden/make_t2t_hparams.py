"""Write `features/tensor2tensor/data/hparams.json`: the values of tensor2tensor's sets.

Run by the real tensor2tensor 1.15.7 with Python 3.7, with the names of the sets:

    python tests/golden/make_t2t_hparams.py transformer_base ...

`basic_params1` and `transformer_base_v1` come first; each of the others has what
differs from `transformer_base_v1`, and `transformer_base_v1` what differs from
`basic_params1`.
"""

import json
import os
import sys

from tensor2tensor.layers import common_hparams
from tensor2tensor.models import transformer  # noqa: F401
from tensor2tensor.utils import registry

FOLDER = os.path.join(os.path.dirname(__file__), "..", "..", "t2t_repro", "features")
FILE = os.path.join(FOLDER, "tensor2tensor", "data", "hparams.json")


def changes(values, base):
    return {key: value for key, value in values.items() if base.get(key, "?") != value}


def main():
    basic = common_hparams.basic_params1().values()
    oldest = registry.hparams("transformer_base_v1").values()
    lines = [("basic_params1", basic), ("transformer_base_v1", changes(oldest, basic))]
    for name in sorted(set(sys.argv[1:]) - {"transformer_base_v1"}):
        lines.append((name, changes(registry.hparams(name).values(), oldest)))
    text = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(values, sort_keys=True)}"
        for name, values in lines
    )
    with open(FILE, "w") as file:
        file.write("{\n" + text + "\n}\n")


main()
