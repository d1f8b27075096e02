"""Hparams sets that are changed in place."""

from tensor2tensor.models import transformer
from tensor2tensor.models.transformer import transformer_base_single_gpu
from tensor2tensor.utils import registry


@registry.register_hparams
def transformer_own():
    hparams = transformer.transformer_big()
    hparams.hidden_size //= 8
    hparams.num_heads = 4
    hparams.layer_prepostprocess_dropout = 0.2
    hparams.add_hparam("own_switch", True)
    hparams.batch_size = hparams.max_length * 4
    return hparams


@registry.register_hparams("own_small")
def small():
    hparams = transformer_base_single_gpu()
    hparams.parse("num_hidden_layers=1,num_heads=2,learning_rate_constant=0.25")
    hparams.override_from_dict({"hidden_size": 64, "filter_size": 128})
    hparams.set_hparam("attention_dropout", 0)
    return hparams


@registry.register_hparams()
def own_second():
    hparams = registry.hparams("own_small")
    hparams.shared_embedding_and_softmax_weights = False
    return hparams


@registry.register_ranged_hparams
def own_range(rhp):
    rhp.set_float("learning_rate", 0.3, 3.0, scale=rhp.LOG_SCALE)
