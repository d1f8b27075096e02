"""Typed settings of preparation, models, training and decoding."""
