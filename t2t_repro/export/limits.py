"""Limits of a served system. Imports no TensorFlow, so that `--help` can show them."""

MAX_SOURCE_TOKENS = 4096  # about 16,000 letters of English, or 16 sources of 256 tokens
