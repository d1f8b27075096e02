"""Run a command of tensor2tensor: `python -m t2t_repro.cli.tensor2tensor t2t-bleu`."""

import sys

from t2t_repro.cli.tensor2tensor.commands import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2:]))
