"""Table 3 of the paper, row by row, and its attention over parameters.

`transformer_base_<row>` is the base model with the one change of that row.
"""

from collections.abc import Callable

from t2t_repro.published import ATTENTION_OVER_PARAMETERS, TABLE_3, Variation
from t2t_repro.registry import hparams_sets, register_hparams
from t2t_repro.settings.hparams import HParams

from .transformer import transformer_base, transformer_big, transformer_big_enfr

_CARD = """{heading}.

Source: Vaswani et al. 2017, {table}. All other values are the base model's.
Published: newstest2013 en-de perplexity {perplexity} a subword, BLEU {bleu} (beam 4,
    alpha 0.6, no averaging; {steps:,} steps).
Measured: `t2t reproduce {command}`.
Command: t2t train --problem translate_ende_wmt14 --hparams_set {name}
    --data_dir DATA --output_dir OUT --train_steps {steps}
"""


def _register(row: Variation, table: str, command: str) -> None:
    def variation() -> HParams:
        return transformer_base().replace(**row.changes)

    variation.__name__ = f"transformer_base_{row.row}"
    changes = ", ".join(f"{name}={value}" for name, value in row.changes.items())
    variation.__doc__ = _CARD.format(
        heading=f"Table 3, {row.label}: the base model with {changes}"
        if command == "table3"
        else f"Attention over parameters, {row.label}",
        table=table,
        perplexity=row.perplexity,
        bleu=row.bleu,
        steps=row.train_steps,
        command=command,
        name=variation.__name__,
    )
    register_hparams(variation)


for _row in TABLE_3:
    if _row.changes:
        _register(_row, "table 3", "table3")
for _row in ATTENTION_OVER_PARAMETERS:
    _register(_row, "LaTeX source, section on attention over parameters", "aop")


# tensor2tensor's names. There, they vary its own later base model.
ALIASES = {
    "transformer_h1": "transformer_base_a_h1",
    "transformer_h4": "transformer_base_a_h4",
    "transformer_h16": "transformer_base_a_h16",
    "transformer_h32": "transformer_base_a_h32",
    "transformer_k128": "transformer_base_b_dk16",
    "transformer_k256": "transformer_base_b_dk32",
    "transformer_l2": "transformer_base_c_n2",
    "transformer_l4": "transformer_base_c_n4",
    "transformer_l8": "transformer_base_c_n8",
    "transformer_hs256": "transformer_base_c_d256",
    "transformer_hs1024": "transformer_base_c_d1024",
    "transformer_ff1024": "transformer_base_c_dff1024",
    "transformer_ff4096": "transformer_base_c_dff4096",
    "transformer_dr0": "transformer_base_d_dr0",
    "transformer_dr2": "transformer_base_d_dr2",
    "transformer_ls0": "transformer_base_d_ls0",
    "transformer_ls2": "transformer_base_d_ls2",
    "transformer_parameter_attention_a": "transformer_base_aop1",
}
REFUSED = {
    "transformer_parameter_attention_b": "in tensor2tensor it also has 16 heads in the "
    "ordinary attention; the paper's row is transformer_base_aop2.",
    "transformer_l10": "the paper has no such row; use transformer_base with "
    "--hparams num_hidden_layers=10.",
    "transformer_big_dr2": "the paper has no such row; use transformer_big with "
    "--hparams layer_prepostprocess_dropout=0.2.",
    "transformer_base_v1": "transformer_base is the paper's, which version 1 was meant "
    "to be.",
    "transformer_base_v2": "transformer_base is the paper's; tensor2tensor's last is "
    "transformer_base_v3.",
    "transformer_parsing_base": "tensor2tensor's has 6 layers, the paper's parser 4; "
    "use transformer_parsing_wsj.",
    "transformer_parsing_base_dr6": "tensor2tensor's has 6 layers, the paper's parser "
    "4; use transformer_parsing_wsj.",
    "transformer_parsing_big": "tensor2tensor's has 6 layers, the paper's parser 4; "
    "use transformer_parsing_semi.",
}


def _register_alias(name: str, target: Callable[[], HParams]) -> None:
    def alias() -> HParams:
        return target()

    alias.__doc__ = f"{target.__name__} by tensor2tensor's name."
    register_hparams(name)(alias)


for _name, _target in ALIASES.items():
    _register_alias(_name, hparams_sets.get(_target))
_register_alias("transformer_big_dr1", transformer_big_enfr)
_register_alias("transformer_big_dr3", transformer_big)
for _name, _why in REFUSED.items():
    hparams_sets.refuse(_name, _why)
