"""Show attention: in TensorBoard, as one HTML page, and as figures."""
