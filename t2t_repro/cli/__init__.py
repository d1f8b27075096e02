"""The `t2t` command: one module a command, TensorFlow imported when one runs."""
