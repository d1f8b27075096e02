"""The `t2t` command: one module per command, which imports TensorFlow when it runs."""
