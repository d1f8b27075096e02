"""Names of tensor2tensor that a package uses and this program does not have.

A name without a stand-in can be imported and subclassed, so that the other classes of
the package still work. Whoever calls it, or asks for a class made of it, learns the
place and what to write instead.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

from t2t_repro import registry
from t2t_repro.errors import UserError
from t2t_repro.user_packages import running_line

logger = logging.getLogger(__name__)

_TEXT_ONLY = (
    "problems are pairs of text here: subclass text_problems.Text2TextProblem, "
    "whose `generate_samples` yields inputs and targets"
)
_MODEL = (
    "the model is the Transformer here; docs/extending.md registers an attention of "
    "your own, a monitor or an evaluator"
)

# What to write instead of a name of tensor2tensor, by a word of the name with its
# module; the first one that is found counts.
ANSWERS = {
    "modalit": "both sides are text, and their modality is fixed: leave it out",
    "register_": "docs/extending.md shows what can be registered here",
    "common_hparams": "start from a set of models.transformer",
    "hparam": "start from a set of models.transformer, and change its values",
    "model": _MODEL,
    "layers": "from t2t_repro import layers; docs/extending.md registers an attention",
    "SubwordTextEncoder": "generator_utils.get_or_generate_vocab makes vocabularies",
    "text_encoder": "the encoders here are SubwordTextEncoder, TokenTextEncoder and "
    "ByteTextEncoder",
    "generator_utils": "yield pairs in `generate_samples`; reading the text, cutting "
    "it and writing it is done here",
    "translate_": "subclass translate.TranslateProblem, whose `source_data_files` "
    "returns the corpora",
    "data_generators": _TEXT_ONLY,
    "metrics": "BLEU and chrF are computed here; docs/extending.md registers an "
    "evaluator",
}
_NO_MODULE = "there is no such module here"


def answer(name: str) -> str:
    """Return what to write instead of a name of tensor2tensor."""
    return next((text for word, text in ANSWERS.items() if word in name), _NO_MODULE)


class Refused:
    """Base of the classes that are made of a name without a stand-in.

    Attributes:
        refused_name: The name.
    """

    refused_name = ""


class Refusal:
    """A name of tensor2tensor that has no stand-in.

    Args:
        name: The name with its module.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Refusal:
        if name.startswith("__"):
            raise AttributeError(name)
        return Refusal(f"{self._name}.{name}")

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        del bases
        return (type("Refused", (Refused,), {"refused_name": self._name}),)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        del args, kwargs
        raise refused(self._name)


def refused(what: str, instead: str = "") -> UserError:
    """Return the error for something that the package's running line asks for.

    Args:
        what: A name of tensor2tensor, or what is asked for.
        instead: What to write instead; by default, the answer to the name.
    """
    text = f"{what} is not here: {instead or answer(what)}"
    return UserError(located(text))


def located(text: str) -> str:
    """Return a message with the running line of the package before it, if any."""
    return ": ".join(filter(None, (running_line(), text)))


def snake_case(name: str) -> str:
    """Return tensor2tensor's name of a class; `utils/misc_utils.py` has the rule."""
    words = re.sub("(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    return re.sub("([a-z0-9])([A-Z])", r"\1_\2", words).lower()


def decorator(register: Callable[[str, Any], Any]) -> Callable[..., Any]:
    """Let `register` be used bare or with a name, as tensor2tensor's decorators."""

    def decorated(key_or_value: Any = None, name: str | None = None) -> Any:
        if callable(key_or_value):
            return register(snake_case(key_or_value.__name__), key_or_value)
        key = key_or_value or name
        return lambda value: register(key or snake_case(value.__name__), value)

    return decorated


def _refuse_model(name: str, cls: Any) -> Any:
    registry.models.refuse(name, located(_MODEL))
    return cls


def _leave_out(name: str, value: Any) -> Any:
    logger.debug("%s", located(f"{name} is left out: no command here uses it"))
    return value


register_model = decorator(_refuse_model)
leave_out = decorator(_leave_out)
