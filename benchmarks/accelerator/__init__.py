"""Training on one accelerator with Keras's JAX backend; see docs/accelerator.md."""
