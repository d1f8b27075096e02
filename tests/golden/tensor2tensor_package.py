"""Problems and hparams sets of the golden models, as a package of tensor2tensor.

`make_tensor2tensor.py` gives it to the real tensor2tensor as `--t2t_usr_dir`. The text
lies in `tmp_dir`: `train.en`, `train.de`, `dev.en` and `dev.de`.
"""

import os

from tensor2tensor.data_generators import problem, text_encoder, text_problems
from tensor2tensor.models import transformer
from tensor2tensor.utils import registry


def _pairs(tmp_dir, dataset_split):
    name = "train" if dataset_split == problem.DatasetSplit.TRAIN else "dev"
    sides = [os.path.join(tmp_dir, f"{name}.{side}") for side in ("en", "de")]
    return text_problems.text2text_txt_iterator(*sides)


@registry.register_problem
class TranslateGolden(text_problems.Text2TextProblem):
    """One vocabulary for both sides."""

    @property
    def approx_vocab_size(self):
        return 2**8

    @property
    def is_generate_per_split(self):
        return True

    @property
    def dataset_splits(self):
        return [
            {"split": problem.DatasetSplit.TRAIN, "shards": 1},
            {"split": problem.DatasetSplit.EVAL, "shards": 1},
        ]

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        return _pairs(tmp_dir, dataset_split)


@registry.register_problem
class TranslateGoldenTwo(TranslateGolden):
    """A vocabulary for each side, as `TranslateEnzhWmt32k` of tensor2tensor has."""

    def _vocabulary_path(self, data_dir, side):
        return os.path.join(data_dir, f"{self.vocab_filename}.{side}")

    def _vocabularies(self, data_dir, tmp_dir):
        encoders = {}
        for feature, side, size in (("inputs", "en", 100), ("targets", "de", 140)):
            path = self._vocabulary_path(data_dir, side)
            if not os.path.exists(path):
                samples = _pairs(tmp_dir, problem.DatasetSplit.TRAIN)
                text = (sample[feature] for sample in samples)
                text_encoder.SubwordTextEncoder.build_from_generator(
                    text, size
                ).store_to_file(path)
            encoders[feature] = text_encoder.SubwordTextEncoder(path)
        return encoders

    def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
        encoders = self._vocabularies(data_dir, tmp_dir)
        return text_problems.text2text_generate_encoded(
            _pairs(tmp_dir, dataset_split), encoders["inputs"], encoders["targets"]
        )

    def feature_encoders(self, data_dir):
        return self._vocabularies(data_dir, None)


def _small(hparams):
    hparams.hidden_size = 24
    hparams.filter_size = 32
    hparams.num_heads = 2
    hparams.num_hidden_layers = 2
    hparams.batch_size = 1024
    hparams.max_length = 64
    hparams.learning_rate_constant = 0.7
    hparams.learning_rate = 0.07
    hparams.learning_rate_warmup_steps = 400
    return hparams


@registry.register_hparams
def golden_v3():
    """Pre-norm, the schedule as a product of factors."""
    return _small(transformer.transformer_base_v3())


@registry.register_hparams
def golden_v1():
    """Post-norm, the legacy schedule, padded rows."""
    hparams = _small(transformer.transformer_base_v1())
    hparams.vocab_divisor = 16
    return hparams


@registry.register_hparams
def golden_separate():
    """Three matrices of few shards, learned positions, wide keys, other depths."""
    hparams = _small(transformer.transformer_base_v2())
    hparams.shared_embedding_and_softmax_weights = False
    hparams.symbol_modality_num_shards = 3
    hparams.pos = "emb"
    hparams.max_length = 40
    hparams.ffn_layer = "conv_hidden_relu"
    hparams.attention_key_channels = 16
    hparams.num_encoder_layers = 1
    hparams.num_decoder_layers = 2
    return hparams
