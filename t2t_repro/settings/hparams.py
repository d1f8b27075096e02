"""The settings of a model and its training, read from a registered set and overrides.

`hparam_fields` declares the names; `hparam_checks` checks how values fit together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from t2t_repro import registry
from t2t_repro.errors import UserError
from t2t_repro.settings.hparam_checks import contradictions, ineffective
from t2t_repro.settings.hparam_fields import HParamFields

# Settings that earlier versions wrote to `hparams.json` and that nothing ever read.
RETIRED = ("optimizer",)


@dataclass(frozen=True, kw_only=True)
class HParams(HParamFields):
    """Settings of a model and its training, all explicit, typed and checked.

    `register_hparams` calls `with_origin` to record the set that a value comes from.
    """

    flag: ClassVar[str] = "--hparams"
    flag_as_zero: ClassVar[str] = "given as 0"
    how_to_list: ClassVar[str] = (
        "`t2t show transformer_base` explains every name and value."
    )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read saved settings, without the `RETIRED` ones."""
        kept = {name: value for name, value in values.items() if name not in RETIRED}
        return super().from_dict(kept)

    def parse(self, text: str) -> Self:
        """Apply overrides written as `name=value,name=value`.

        Raises:
            UsageError: If a name is unknown or given twice, a value has the wrong type
                or is out of range, or an override would have no effect.
        """
        parsed = super().parse(text)
        parsed.check_registered()
        return parsed

    def check_registered(self) -> None:
        """Check the values that name a registered object.

        Construction does not call it, because the `hparams.json` of a run is read
        before the user's package is imported.

        Raises:
            UsageError: If `self_attention_type` is not registered.
        """
        registry.attentions.entry(self.self_attention_type)

    def check_together(self) -> None:
        """Check how the values fit together.

        Raises:
            UserError: If two values that are valid alone contradict each other.
        """
        for problem in contradictions(self):
            raise UserError(problem)

    def ineffective_settings(self) -> dict[str, str]:
        """Return the reason by name for settings that have no effect."""
        return dict(ineffective(self))

    def resolved(self) -> Self:
        """Return a copy in which zeros that mean another setting have its value.

        The numbers of layers and the channels of attention are then those of the model.

        Raises:
            UsageError: If `self_attention_type` is not registered.
        """
        self.check_registered()
        meanings = {
            "num_encoder_layers": self.num_hidden_layers,
            "num_decoder_layers": self.num_hidden_layers,
            "attention_key_channels": self.hidden_size,
            "attention_value_channels": self.hidden_size,
            "parameter_attention_heads": self.num_heads,
            "parameter_attention_key_channels": self.hidden_size,
            "parameter_attention_value_channels": self.hidden_size,
        }
        open_names = {n: v for n, v in meanings.items() if not getattr(self, n)}
        # A zero that the user gave is still an override of the set.
        given = [n for n in open_names if self.origins.get(n) == self.flag]
        zeros = dict.fromkeys(given, self.flag_as_zero)
        resolved = self.replace(**open_names)
        return replace(resolved, origins={**resolved.origins, **zeros}).with_origin(
            "derived"
        )

    def given(self) -> dict[str, Any]:
        """Return the overrides by name, as `parse` read them before `resolved`."""
        zeros = (n for n, at in self.origins.items() if at == self.flag_as_zero)
        return {
            name: value
            for name, value in (self.values() | dict.fromkeys(zeros, 0)).items()
            if self.origins.get(name) in (self.flag, self.flag_as_zero)
        }
