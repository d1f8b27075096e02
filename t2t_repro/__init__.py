"""Attention Is All You Need on TensorFlow and Keras, in tensor2tensor's way of working.

Importing the package loads neither TensorFlow nor Keras.
"""

from t2t_repro._checkout import make_catalogues_importable

__version__ = "0.1.0"

make_catalogues_importable()
