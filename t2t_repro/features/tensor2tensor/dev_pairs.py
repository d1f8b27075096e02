"""Some pairs of ids from the shards that `t2t-datagen` wrote."""

from __future__ import annotations

import glob
import itertools
from collections.abc import Iterator
from pathlib import Path

from t2t_repro.constants import EOS_ID, INPUTS, INPUTS_SEGMENTATION, TARGETS
from t2t_repro.data.records import DamagedRecordError, example_ids, records_of
from t2t_repro.errors import UserError
from t2t_repro.files import matching
from t2t_repro.registry import REVERSED_SUFFIX

_MAX_PAIRS = 200
_MAX_BYTES = 2**30


def read_dev_pairs(
    data_dir: Path | None, problem: str | None, rows: tuple[int, int]
) -> list[tuple[list[int], list[int]]]:
    """Return pairs of the dev split; none without such a split, or if it is packed.

    Args:
        data_dir: Folder of the shards, or None.
        problem: Name of the problem, or None.
        rows: Number of ids of the inputs and of the targets.

    Raises:
        UserError: If a shard is damaged, or has ids that the model does not have.
    """
    if data_dir is None or problem is None:
        return []
    base = problem.removesuffix(REVERSED_SUFFIX)
    sides = (INPUTS, TARGETS)
    if base != problem:
        sides = sides[::-1]
    shards = sorted(matching(data_dir, f"{glob.escape(base)}-dev-*-of-*"))
    pairs = itertools.chain.from_iterable(_pairs(path, sides, rows) for path in shards)
    return list(itertools.islice(pairs, _MAX_PAIRS))


def _pairs(
    path: Path, sides: tuple[str, str], rows: tuple[int, int]
) -> Iterator[tuple[list[int], list[int]]]:
    if path.stat().st_size > _MAX_BYTES:
        return
    try:
        for record in records_of(path):
            ids = example_ids(record)
            pair = [list(ids.get(side, ())) for side in sides]
            for side, size in zip(pair, rows, strict=True):
                if side and not 0 <= min(side) <= max(side) < size:
                    raise UserError(
                        f"received {path} with id {max(side)}, expected ids below "
                        f"{size}, the rows of the model's table: it is the data of "
                        "another vocabulary."
                    )
            if INPUTS_SEGMENTATION not in ids and all(
                side and side[-1] == EOS_ID for side in pair
            ):
                yield pair[0], pair[1]
    except (EOFError, DamagedRecordError) as error:
        raise UserError(f"{path} is damaged ({error}): copy it again.") from error
