"""Look at attention: capture, web page, TensorBoard plugin, figures, alignments."""
