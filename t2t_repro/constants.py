"""Ids and feature names shared by every part; tensor2tensor's values.

Source: tensor2tensor data_generators/text_encoder.py (PAD_ID, EOS_ID); the unknown
symbol's id is this project's, the next free one.
"""

PAD_ID = 0
EOS_ID = 1
UNK_ID = 2

INPUTS = "inputs"
TARGETS = "targets"

# What kappa and alpha of a Weighted Transformer may be at test time (its section 4.4).
BRANCH_WEIGHT_MODES = ("learned", "random", "uniform")
