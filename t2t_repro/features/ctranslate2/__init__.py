"""CTranslate2: an engine that translates, and an export, both compared with the model.

`pip install 't2t-repro[ctranslate2]'` installs what it needs.
"""

from t2t_repro.features import Feature

FEATURE = Feature(
    exports={
        "ctranslate2": "t2t_repro.features.ctranslate2.command_export_ctranslate2"
    },
    engines={"ctranslate2": "t2t_repro.features.ctranslate2.command_engine"},
)
