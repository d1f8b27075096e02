"""`t2t serve`: HTTP for TensorFlow Serving's and LibreTranslate's clients, and a page.

`pip install 't2t-repro[serve]'` installs what it needs.
"""

from t2t_repro.features import Command, Feature

FEATURE = Feature(
    commands={
        "serve": Command(
            "t2t_repro.features.serving.command_serve",
            "answer HTTP requests for translations",
        )
    },
    uses=("attention_view", "ctranslate2", "saved_model"),
)
