"""Read attention through TensorBoard's provider of data.

This module imports no TensorFlow: TensorBoard loads it when it starts.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tensorboard.context import RequestContext
from tensorboard.data.provider import DataProvider, RunTagFilter

from t2t_repro.features.attention_view.event_damage import find_damage
from t2t_repro.features.attention_view.event_format import (
    BRANCHES_TAG,
    PLUGIN_NAME,
    DamagedError,
    sentence_id_of,
    sentence_tag,
    unpack_branches,
    unpack_document,
    unpack_title,
)

# TensorBoard wants a limit here. It has already dropped the steps it does not keep.
_ALL_STEPS = 1_000_000
_NOT_FOUND, _UNPROCESSABLE = 404, 422


class ReadError(Exception):
    """There is nothing to read, or it is damaged.

    Args:
        message: One sentence for the page.
        code: HTTP status from 400 to 499.
    """

    def __init__(self, message: str, code: int = _NOT_FOUND) -> None:
        super().__init__(message)
        self.code = code


@dataclasses.dataclass(frozen=True)
class EventReader:
    """Reader of the attention of one experiment.

    Attributes:
        provider: TensorBoard's provider of data.
        context: The request to answer.
        experiment: Id of the experiment; empty for a folder of logs.
        logdir: Folder of the runs, or "" if they are not in one folder.
    """

    provider: DataProvider
    context: RequestContext
    experiment: str
    logdir: str = ""

    def runs(self) -> list[str]:
        """Return the names of the runs that have attention."""
        sentences = self._read(self.provider.list_blob_sequences)
        branches = self._read(self.provider.list_tensors)
        return sorted({*sentences, *branches}, key=_natural_order)

    def contents(self, run: str) -> dict[str, Any]:
        """Return the sentence pairs of a run, and whether it has branches.

        Returns:
            "sentences", each with its "id", "title" and "steps"; "branches"; and
            "damage", a sentence about damaged event files or None.

        Raises:
            ReadError: If the run has no attention, or it is damaged.
        """
        sentences = self._read(self.provider.list_blob_sequences, [run]).get(run, {})
        branches = self._read(self.provider.list_tensors, [run]).get(run, {})
        if not sentences and not branches:
            raise ReadError(f'The run "{run}" has no attention.')
        found, shown = [], set[int]()
        for tag in sorted(sentences, key=_natural_order):
            name = sentence_id_of(tag)
            title = unpack_title(sentences[tag].plugin_content) or name
            steps = list(self._blob_keys(run, tag))
            found.append({"id": name, "title": title, "steps": steps})
            shown.update(steps)
        return {
            "sentences": found,
            "branches": BRANCHES_TAG in branches,
            "damage": self._damage(run, shown),
        }

    def _damage(self, run: str, shown: set[int]) -> str | None:
        """Return a sentence if TensorBoard may not have read all events of a run."""
        damage = find_damage(Path(self.logdir, run), shown) if self.logdir else None
        return None if damage is None else damage.sentence(run)

    def document(self, run: str, sentence_id: str, step: int) -> bytes:
        """Return the document of a sentence pair at a step, as `pack_document` does.

        Raises:
            ReadError: If there is none, or it is damaged.
        """
        keys = self._blob_keys(run, sentence_tag(sentence_id))
        if step not in keys:
            raise ReadError(
                f'The run "{run}" has no attention of "{sentence_id}" at step {step}.'
            )
        with _damage(f'the attention of "{sentence_id}" at step {step}'):
            content = self.provider.read_blob(self.context, blob_key=keys[step])
            unpack_document(content)
        return content

    def branches(self, run: str) -> list[dict[str, Any]]:
        """Return kappa and alpha of a run's layers at every step.

        Returns:
            Dictionaries with "step" and "layers", in the order of steps.

        Raises:
            ReadError: If there are none, or they are damaged.
        """
        series = self._series(self.provider.read_tensors, run, BRANCHES_TAG)
        if not series:
            raise ReadError(f'The run "{run}" has no kappa and alpha.')
        found = {}
        for datum in series:
            with _damage(f"the tensor of kappa and alpha at step {datum.step}"):
                found[datum.step] = unpack_branches(datum.numpy.item())
        return [{"step": step, "layers": found[step]} for step in sorted(found)]

    def _blob_keys(self, run: str, tag: str) -> dict[int, str]:
        """Return the key of the document at every step, in the order of steps."""
        series = self._series(self.provider.read_blob_sequences, run, tag)
        keys = {
            datum.step: datum.values[0].blob_key for datum in series if datum.values
        }
        return dict(sorted(keys.items()))

    def _series(self, read: Callable[..., Any], run: str, tag: str) -> list[Any]:
        found = self._read(read, [run], [tag], downsample=_ALL_STEPS)
        return found.get(run, {}).get(tag, [])

    def _read(
        self,
        read: Callable[..., Any],
        runs: list[str] | None = None,
        tags: list[str] | None = None,
        **limits: int,
    ) -> dict[str, Any]:
        """Call a method of the provider that returns time series by run and tag."""
        with _damage("the attention" + (f' of the run "{runs[0]}"' if runs else "")):
            return read(
                self.context,
                experiment_id=self.experiment,
                plugin_name=PLUGIN_NAME,
                run_tag_filter=RunTagFilter(runs=runs, tags=tags),
                **limits,
            )


@contextmanager
def _damage(name: str) -> Iterator[None]:
    """Turn any failure of reading into a sentence.

    TensorBoard has several providers of data, and each raises other errors for a
    tensor of another shape, a changed file or a server that has stopped.
    """
    try:
        yield
    except DamagedError as error:
        raise ReadError(
            f"{_capital(name)} is damaged: {error}.", _UNPROCESSABLE
        ) from error
    except Exception as error:
        raise ReadError(
            f"TensorBoard cannot read {name}: {type(error).__name__}.", _UNPROCESSABLE
        ) from error


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _natural_order(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts "sentence_10" after "sentence_9"."""
    return [
        # `int` refuses thousands of digits.
        (len(digits), digits)
        if (digits := part.lstrip("0")).isdecimal()
        else (-1, part)
        for part in re.split(r"(\d+)", name)
    ]
