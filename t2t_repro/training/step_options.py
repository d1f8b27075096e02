"""What is optional in an update of the weights."""

from __future__ import annotations

import contextlib
import dataclasses

from t2t_repro.training.compilation import all_but_products


@dataclasses.dataclass(frozen=True)
class StepOptions:
    """Options of an update.

    Attributes:
        label_smoothing: The paper's epsilon_ls.
        clip_grad_norm: Largest gradient norm of all weights together; 0 = no
            clipping.
        jit_compile: Whether XLA compiles the step, once per batch shape.
        micro_batches: Number of equal parts of a replica's rows. Their gradients are
            computed one after the other and added up, which needs less memory.
        rdrop_weight: Weight of the divergence between two passes with different
            dropout; 0 = one pass. See `rdrop_losses`.
        rdrop_after_steps: Number of updates of one pass before the first of two.
        jit_products: Whether XLA, if it compiles the step, compiles matrix products,
            too. See `all_but_products`.
    """

    label_smoothing: float
    clip_grad_norm: float = 0.0
    jit_compile: bool = False
    micro_batches: int = 1
    rdrop_weight: float = 0.0
    rdrop_after_steps: int = 0
    jit_products: bool = True

    @property
    def jit_all(self) -> bool:
        """Whether XLA compiles the step as one function."""
        return self.jit_compile and self.jit_products

    def compile_scope(self) -> contextlib.AbstractContextManager[None]:
        """Return the scope of what XLA compiles, unless it compiles all or nothing."""
        some = self.jit_compile and not self.jit_products
        return all_but_products() if some else contextlib.nullcontext()
