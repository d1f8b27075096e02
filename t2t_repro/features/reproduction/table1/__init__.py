"""Table 1 of the paper: complexity of layers, printed and measured."""
