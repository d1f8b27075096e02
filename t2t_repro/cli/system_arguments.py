"""Flags that name a run and a checkpoint; shared by several commands."""

from __future__ import annotations

import argparse


def add_system_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name a run and a checkpoint."""
    parser.add_argument(
        "--output_dir", required=True, help="folder of the run, as given to t2t train"
    )
    parser.add_argument(
        "--checkpoint_path",
        default="latest",
        metavar="latest|best|averaged|PATH",
        help="which weights to use (default: latest)",
    )
    parser.add_argument(
        "--t2t_usr_dir",
        help="package with problems, models and hparams of your own (default: the one "
        "the run was trained with)",
    )
