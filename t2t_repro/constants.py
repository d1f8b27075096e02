"""Ids and feature names that all packages share; tensor2tensor's values.

Source: tensor2tensor data_generators/text_encoder.py (PAD_ID, EOS_ID); the unknown
symbol's id is this project's, the next free one.
"""

PAD_ID = 0
EOS_ID = 1
UNK_ID = 2

# Padding of the kinds of words that a `TargetGrammar` tells apart.
NO_WORD = -1

INPUTS = "inputs"
TARGETS = "targets"

# Where each token of a packed row belongs; tensor2tensor `generator_utils.py:
# pack_examples`. Segments are counted from 1 (0 is padding), positions from 0.
INPUTS_SEGMENTATION = "inputs_segmentation"
INPUTS_POSITION = "inputs_position"
TARGETS_SEGMENTATION = "targets_segmentation"
TARGETS_POSITION = "targets_position"

# Kappa and alpha of a Weighted Transformer at test time (section 4.4 of its paper).
BRANCH_WEIGHT_MODES = ("learned", "random", "uniform")
