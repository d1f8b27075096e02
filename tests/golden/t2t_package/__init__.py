"""A package for `--t2t_usr_dir`, written for tensor2tensor."""

from . import own_problems, own_sets  # noqa: F401
