"""Encode pairs of text as examples, in this process or in worker processes.

Nothing here imports TensorFlow, so that a worker process starts quickly and stays
small.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from t2t_repro.constants import EOS_ID
from t2t_repro.data.problem import has_empty_side
from t2t_repro.data.records import example_bytes
from t2t_repro.errors import UserError
from t2t_repro.settings.prepare_settings import PrepareSettings
from t2t_repro.text import Tokenizer
from t2t_repro.text.tokenizer_files import SIDES

Ids = list[int]


@dataclass(frozen=True)
class TextBatch:
    """Consecutive pairs of a split.

    Attributes:
        sources: Source texts.
        targets: Target texts.
        written: Texts that the model learns to write for the targets.
        copies: Number of times that each pair is written to the shards.
        number: Number of the batch in its split, from 0.
    """

    sources: Sequence[str]
    targets: Sequence[str]
    written: Sequence[str]
    copies: Sequence[int]
    number: int


@dataclass(frozen=True)
class EncodedBatch:
    """The pairs of a `TextBatch` in the form of the shards.

    The filters read `lengths`, which do not depend on any sampling.

    Attributes:
        digests: Return value of `pair_digests`, uint64 `[pairs]`.
        is_empty: Whether a side has no text or no subwords, bool `[pairs]`.
        lengths: Subwords of the inputs and of the targets, with the end of sentence,
            int32 `[2, pairs]`.
        copies: Number of times that each pair is written, int32 `[pairs]`.
        written_lengths: Lengths of all copies of the first pair, then of the second
            one, and so on, int32 `[2, examples]`.
        records: Serialized `tf.train.Example` of each copy.
    """

    digests: np.ndarray
    is_empty: np.ndarray
    lengths: np.ndarray
    copies: np.ndarray
    written_lengths: np.ndarray
    records: list[bytes]


@dataclass(frozen=True)
class PairEncoder:
    """Encoder of batches of pairs; a worker process receives it once.

    Attributes:
        tokenizers: Tokenizers of the inputs and of the targets.
        sampling: Settings of the sampling of every copy's subwords; None = all
            copies have the usual subwords.
    """

    tokenizers: tuple[Tokenizer, Tokenizer]
    sampling: PrepareSettings | None = None

    def __call__(self, batch: TextBatch) -> EncodedBatch:
        """Return the examples of a batch."""
        # `encode_batch` starts threads, which would compete with the other workers.
        texts = (batch.sources, batch.written)
        usual = [
            [tokenizer.encode(text) for text in side]
            for tokenizer, side in zip(self.tokenizers, texts, strict=True)
        ]
        copies = np.array(batch.copies, np.int32)
        if self.sampling is None:
            inputs, targets = (
                [
                    ids
                    for ids, count in zip(side, copies, strict=True)
                    for _ in range(count)
                ]
                for side in usual
            )
        else:
            copies *= self.sampling.subword_copies
            inputs, targets = (
                _sample(self.sampling, *side, copies.tolist(), batch.number)
                for side in zip(SIDES, self.tokenizers, texts, usual, strict=True)
            )
        pairs = [*zip(batch.sources, batch.targets, strict=True)]
        lengths = _lengths(*usual)
        return EncodedBatch(
            digests=pair_digests(pairs),
            is_empty=np.array([*map(has_empty_side, pairs)])
            | (lengths == 1).any(axis=0),
            lengths=lengths,
            copies=copies,
            written_lengths=_lengths(inputs, targets),
            records=[
                example_bytes([*source, EOS_ID], [*target, EOS_ID])
                for source, target in zip(inputs, targets, strict=True)
            ],
        )


def _lengths(inputs: list[Ids], targets: list[Ids]) -> np.ndarray:
    """Return the lengths of ids with an end of sentence, int32 `[2, texts]`."""
    return np.array([[*map(len, inputs)], [*map(len, targets)]], np.int32) + 1


def pair_digests(pairs: Iterable[tuple[str, str]]) -> np.ndarray:
    """Return a 64-bit hash of each pair of texts, uint64 `[pairs]`."""
    content = b"".join(
        # No line contains a newline, so the boundary of the two sides is unambiguous.
        hashlib.blake2b(
            f"{source}\n{target}".encode("utf-8", "surrogatepass"), digest_size=8
        ).digest()
        for source, target in pairs
    )
    return np.frombuffer(content, "<u8")


def _sample(
    settings: PrepareSettings,
    name: str,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    usual: Sequence[Ids],
    copies: Sequence[int],
    number: int,
) -> list[Ids]:
    """Sample the subwords of every copy of one side of a batch of pairs.

    Args:
        settings: Strength and seed of the sampling, and the limit of the length.
        name: Name of the side, which becomes part of the seed.
        tokenizer: Tokenizer of the side.
        texts: Texts of the side.
        usual: Ids of the texts without sampling. They replace a sample that is longer
            than the limit, so that every pair has all its copies.
        copies: Number of copies of each pair.
        number: Number of the batch in the text.

    Returns:
        The ids of all copies of the first text, then of the second one, and so on.
    """
    sampled: list[list[Ids]] = [[] for _ in texts]
    for copy in range(max(copies, default=0)):
        rows = [row for row, count in enumerate(copies) if count > copy]
        # A batch is the unit of work that does not depend on the number of workers.
        seed = f"{settings.shuffle_seed}/{number}/{copy}/{name}"
        ids = tokenizer.encode_sampled(
            [texts[row] for row in rows], settings.subword_sampling, seed
        )
        for row, sample in zip(rows, ids, strict=True):
            fits = len(sample) < settings.max_pair_length  # the end of sentence follows
            sampled[row].append(sample if fits else [*usual[row]])
    return [sample for samples in sampled for sample in samples]


def check_sampling(
    settings: PrepareSettings, tokenizers: tuple[Tokenizer, Tokenizer]
) -> None:
    """Refuse to sample subwords if no side has any to choose from.

    One side is enough: trees, for example, are written in whole symbols, and their
    sentences in subwords.

    Raises:
        UserError: If each text of both sides has only one segmentation.
    """
    if settings.subword_sampling and not any(side.has_samples for side in tokenizers):
        raise UserError(
            f"received subword_sampling={settings.subword_sampling:g} for vocabularies "
            "of whole symbols, words or characters, expected a BPE or unigram model: "
            "leave out subword_sampling and subword_copies"
        )


_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# A worker process starts in about a second, which few items are not worth.
_ITEMS_BEFORE_WORKERS = 10
_ITEMS_WAITING_PER_WORKER = 3


def ordered_map(
    function: Callable[[_Item], _Result],
    items: Iterable[_Item],
    num_workers: int,
) -> Iterator[_Result]:
    """Yield `function(item)` for each item, in the order of the items.

    Only a few items are read ahead, so any number of items fits in memory. This process
    handles the first ones itself, and starts workers only if there are more.

    Args:
        function: A function or object that can be pickled. Each worker receives it
            once.
        items: The items. They and their results can be pickled.
        num_workers: Number of worker processes. With 1, none is started.

    Raises:
        UserError: If a worker process ends, for example because memory runs out.
    """
    remaining = iter(items)
    if num_workers == 1:
        yield from map(function, remaining)
        return
    for _, item in zip(range(_ITEMS_BEFORE_WORKERS), remaining, strict=False):
        yield function(item)
    first = next(remaining, None)
    if first is not None:
        yield from _map_in_workers(function, first, remaining, num_workers)


def _map_in_workers(
    function: Callable[[_Item], _Result],
    first: _Item,
    items: Iterator[_Item],
    num_workers: int,
) -> Iterator[_Result]:
    pool = ProcessPoolExecutor(
        num_workers,
        # A forked process would inherit TensorFlow's locks without its threads.
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(function,),
    )
    waiting: deque[Future[Any]] = deque()
    try:
        waiting.append(pool.submit(_call, first))
        for item in items:
            waiting.append(pool.submit(_call, item))
            if len(waiting) > _ITEMS_WAITING_PER_WORKER * num_workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise UserError(
            f"one of {num_workers} worker processes ended: give fewer num_workers if "
            "memory ran out. In a Python script, call this under `if __name__ == "
            "'__main__':`, because every worker imports the script"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


_function: Callable[[Any], Any]


def _start_worker(function: Callable[[Any], Any]) -> None:
    global _function
    _function = function
    # Ctrl-C reaches all processes of a terminal; the main process ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when the main process ends, even if it is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _call(item: Any) -> Any:
    return _function(item)
