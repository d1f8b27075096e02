"""Facts from the text of the papers that several tables share."""

# Vaswani et al. 2017, section 5.1: tokens per side and per training step.
TOKENS_PER_STEP = 25_000
# Section 5.2 and the footnote of section 6.1: the GPUs, and the operations per second
# that each is assumed to sustain in single precision.
NUM_GPUS = 8
P100_FLOPS = 9.5e12

BASE_STEPS, BIG_STEPS = 100_000, 300_000  # section 5.2
BASE_STEP_SECONDS, BIG_STEP_SECONDS = 0.4, 1.0  # section 5.2
# Section 6.1: number of checkpoints averaged.
BASE_AVERAGED, BIG_AVERAGED = 5, 20
# Ahmed et al., section 4.1.
WEIGHTED_BASE_STEPS, WEIGHTED_BIG_STEPS = 60_000, 250_000
ADDED_BRANCH_WEIGHTS = 192  # section 3

# Wu et al. 2021, "Good for Misconceived Reasons", a Transformer of width 128 on
# Multi30k's test2016, en-de: BLEU of lower-cased tokens.
MULTI30K_BLEU = 41.02
