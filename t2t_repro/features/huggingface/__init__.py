"""MarianMT of Hugging Face's Transformers, in and out.

`t2t import --from huggingface` makes a run of a folder such as those of the OPUS-MT
models, and `t2t export --format huggingface` writes one. Needs neither `transformers`
nor PyTorch.
"""

from t2t_repro.features import Feature

_FOLDER = "t2t_repro.features.huggingface"

FEATURE = Feature(
    imports={"huggingface": f"{_FOLDER}.command_import_marian"},
    exports={"huggingface": f"{_FOLDER}.command_export_marian"},
    tokenizers={".marian": f"{_FOLDER}.marian_tokenizer"},
)
