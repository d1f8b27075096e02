"""Some pairs of ids from the shards that `t2t-datagen` wrote."""

from __future__ import annotations

import glob
import itertools
from pathlib import Path

from t2t_repro.features.tensor2tensor.old_data import PackedShardError, pairs_of
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
    order = 1 if base == problem else -1
    shards = sorted(matching(data_dir, f"{glob.escape(base)}-dev-*-of-*"))
    small = (path for path in shards if path.stat().st_size <= _MAX_BYTES)
    pairs = (pair for path in small for pair in pairs_of(path, rows[::order]))
    try:
        found = [*itertools.islice(pairs, _MAX_PAIRS)]
    except PackedShardError:
        return []
    return [
        (list(first), list(second)) for first, second in (p[::order] for p in found)
    ]
