"""Ids and feature names that all packages share; tensor2tensor's values.

Source: tensor2tensor data_generators/text_encoder.py (PAD_ID, EOS_ID); the unknown
symbol's id is this project's, the next free one.
"""

PAD_ID = 0
EOS_ID = 1
UNK_ID = 2

INPUTS = "inputs"
TARGETS = "targets"

# Kappa and alpha of a Weighted Transformer at test time (section 4.4 of its paper).
BRANCH_WEIGHT_MODES = ("learned", "random", "uniform")
