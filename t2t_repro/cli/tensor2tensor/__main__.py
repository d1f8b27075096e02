"""Run a command of tensor2tensor: `python -m t2t_repro.cli.tensor2tensor t2t-bleu`."""

import sys

from t2t_repro.cli.tensor2tensor.commands import run_named

if __name__ == "__main__":
    sys.exit(run_named(sys.argv[1:]))
