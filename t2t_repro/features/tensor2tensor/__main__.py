"""Run a command of tensor2tensor: `python -m t2t_repro.features.tensor2tensor NAME`."""

import sys

from t2t_repro.features.tensor2tensor.command_main import run_named

if __name__ == "__main__":
    sys.exit(run_named(sys.argv[1:]))
