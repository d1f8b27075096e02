"""Typed settings: what can be set about preparation, models, training, decoding."""
