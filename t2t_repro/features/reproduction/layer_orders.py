"""Sizes at which the layers of Table 1 are timed."""

from __future__ import annotations

from dataclasses import dataclass

WIDTH_OF_LENGTHS = 64  # d while n grows


@dataclass(frozen=True)
class Sizes:
    """Sizes at which a layer is timed.

    The term that Table 1 names must be the largest. Therefore n is much larger than d
    while n grows and, for n^2 d, also while d grows. A pass takes at least
    milliseconds, so that the cost of starting operations is negligible.

    Attributes:
        lengths: Values of n, at d = `WIDTH_OF_LENGTHS`.
        widths: Values of d.
        length_of_widths: n while d grows.
    """

    lengths: tuple[int, ...]
    widths: tuple[int, ...]
    length_of_widths: int


COLUMNS = ("complexity", "sequential", "path")


@dataclass(frozen=True)
class LayerOrders:
    """Orders of one kind of layer.

    Attributes:
        row: Name of its row in `t2t reproduce table1`.
        label: Name of the kind in Table 1.
        complexity: Operations per layer.
        sequential: Operations that must wait for each other.
        path: Longest path between two positions.
        derived: Names of the orders above that the paper does not print.
    """

    row: str
    label: str
    complexity: str
    sequential: str
    path: str
    derived: tuple[str, ...] = ()


SELF_ATTENTION = LayerOrders("self_attention", "Self-Attention", "n^2 d", "1", "1")
RECURRENT = LayerOrders("recurrent", "Recurrent", "n d^2", "n", "n")
CONVOLUTIONAL = LayerOrders(
    "convolutional", "Convolutional", "k n d^2", "1", "log_k(n)"
)
RESTRICTED = LayerOrders(
    "self_attention_restricted", "Self-Attention (restricted)", "r n d", "1", "n/r"
)

# Table 1 prints the path through dilated convolutions. Section 4 adds that a stack of
# n/k layers connects all positions if kernels have no gaps.
CONTIGUOUS = LayerOrders("convolutional", "Convolutional", "k n d^2", "1", "n/k")
# Section 4 prints only the complexity. The other orders are those of a kernel without
# gaps, because a separable convolution connects the same positions.
SEPARABLE = LayerOrders(
    *("convolutional", "Convolutional", "k n d + n d^2", "1", "n/k"),
    derived=("sequential", "path"),
)

PRINTED = (SELF_ATTENTION, RECURRENT, CONVOLUTIONAL, RESTRICTED)

# Rows that the LaTeX source has in comments, by its first line that holds them. The
# paper does not print them. The second and third table of the source are comments as
# a whole; they repeat rows and call the kernel r.
COMMENTED = {
    19: LayerOrders("", "Convolutional (separable)", "k n d + n d^2", "1", "log_k(n)"),
    20: LayerOrders("", "Position-wise Feed-Forward", "n d^2", "1", "infinity"),
    21: LayerOrders("", "Fully Connected", "n^2 d^2", "1", "1"),
}


def commented_note() -> str:
    """Return the rows of `COMMENTED` as a sentence."""
    rows = [
        f"{layer.label}: O({layer.complexity}), O({layer.sequential}), "
        + ("infinity" if layer.path == "infinity" else f"O({layer.path})")
        + f" (line {line})"
        for line, layer in COMMENTED.items()
    ]
    return f"Commented out in the LaTeX source, not printed: {'; '.join(rows)}."
