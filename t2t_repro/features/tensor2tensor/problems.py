"""tensor2tensor's problems, and what they are called here.

Source: tensor2tensor 1.0 to 1.15, `data_generators/translate_*.py`,
`data_generators/algorithmic.py`, `data_generators/wsj_parsing.py`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OldProblem:
    """A problem of tensor2tensor.

    Attributes:
        name: Registered problem; empty if none has the same text.
        vocab_size: Number of subwords; None for the problem's own.
        answer: How the text differs, or the nearest problem.
    """

    name: str = ""
    vocab_size: int | None = None
    answer: str = ""


_NEWER_NEWS = "WMT 2014's text: News Commentary v9 instead of v13"
_NO_LENGTHS = "with up to 20 digits instead of 40"
_PTB = (
    "nearest: `t2t datagen --problem parsing_ptb --train_trees FILE --dev_trees FILE`"
)
_CHARACTERS = "subwords only; nearest: translate_ende_wmt14"

PROBLEMS = {
    "translate_ende_wmt32k": OldProblem("translate_ende_wmt14", 32768, _NEWER_NEWS),
    "translate_ende_wmt8k": OldProblem("translate_ende_wmt14", 8192, _NEWER_NEWS),
    "translate_ende_wmt_bpe32k": OldProblem(
        "translate_ende_wmt14",
        32000,
        "WMT 2014's text, tokenised by SentencePiece instead of Moses and BPE",
    ),
    "wmt_ende_tokens_32k": OldProblem("translate_ende_wmt14", 32768, "version 1.0"),
    "wmt_ende_bpe32k": OldProblem("translate_ende_wmt14", 32000, "version 1.0"),
    "translate_enfr_wmt32k": OldProblem("translate_enfr_wmt14", 32768),
    "translate_enfr_wmt8k": OldProblem("translate_enfr_wmt14", 8192),
    "wmt_enfr_tokens_32k": OldProblem("translate_enfr_wmt14", 32768, "version 1.0"),
    "translate_ende_wmt32k_packed": OldProblem(
        answer="packing is a setting of the batches here; nearest: translate_ende_wmt14"
    ),
    "translate_ende_wmt_characters": OldProblem(answer=_CHARACTERS),
    "translate_enfr_wmt_characters": OldProblem(
        answer="subwords only; nearest: translate_enfr_wmt14"
    ),
    "translate_enfr_wmt_small32k": OldProblem(
        answer="nearest: translate_enfr_wmt14, or your own files as text_pairs"
    ),
    "translate_enfr_wmt_small8k": OldProblem(
        answer="nearest: translate_enfr_wmt14, or your own files as text_pairs"
    ),
    "algorithmic_identity_decimal40": OldProblem(
        answer=f"nearest: algorithmic_identity, {_NO_LENGTHS}"
    ),
    "algorithmic_identity_binary40": OldProblem(
        answer=f"nearest: algorithmic_identity, {_NO_LENGTHS}"
    ),
    "algorithmic_reverse_decimal40": OldProblem(
        answer=f"nearest: algorithmic_reverse, {_NO_LENGTHS}"
    ),
    "algorithmic_reverse_binary40": OldProblem(
        answer=f"nearest: algorithmic_reverse, {_NO_LENGTHS}"
    ),
    "algorithmic_addition_decimal40": OldProblem(
        answer=f"nearest: algorithmic_addition, {_NO_LENGTHS}"
    ),
    "algorithmic_addition_binary40": OldProblem(
        answer=f"nearest: algorithmic_addition, {_NO_LENGTHS}"
    ),
    "algorithmic_sort_problem": OldProblem(answer="nearest: algorithmic_sort"),
    "parsing_english_ptb8k": OldProblem(answer=_PTB),
    "parsing_english_ptb16k": OldProblem(answer=_PTB),
    "wsj_parsing": OldProblem(answer=_PTB),
    "wsj_parsing_tokens_16k": OldProblem(answer=_PTB),
}
OTHER_TRANSLATION = (
    "give your text: `t2t datagen --problem text_pairs --train_source FILE "
    "--train_target FILE`"
)
OTHER_KIND = "only translation, parsing and algorithmic problems are here"
# Beginnings of the names of problems that are not here.
OTHER_PROBLEMS = {
    "translate_": OTHER_TRANSLATION,
    "summarize_": OTHER_TRANSLATION,
    "text2text_": OTHER_TRANSLATION,
    **dict.fromkeys(
        (
            "audio_",
            "cifar",
            "gym_",
            "image_",
            "img2img_",
            "languagemodel_",
            "librispeech",
            "sentiment_",
            "video_",
        ),
        OTHER_KIND,
    ),
}
