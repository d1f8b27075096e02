"""Write `search_graph.json`: the operations that a search without options traces.

Run from the root of the checkout::

    python tests/golden/make_search_graph.py

Options of the search that are off must cost nothing: no operation may be added to the
graph of the default search. Write the file again only after a change that is meant to
change that graph.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import tensorflow as tf
from keras import ops

from t2t_repro.decoding.beam import beam_search
from t2t_repro.decoding.beam_state import BeamSearchOptions

GOLDEN = Path(__file__).with_name("search_graph.json")
VOCAB_SIZE = 500
CASES = {
    f"beam {beam_size}, {'static' if static else 'changing'} shapes": BeamSearchOptions(
        beam_size=beam_size, alpha=0.6, num_hypotheses=beam_size, static_shapes=static
    )
    for beam_size, static in itertools.product((1, 4), (True, False))
}


def operations(options: BeamSearchOptions, **arguments: Any) -> dict[str, int]:
    """Count the operations of a search by their type, including those of its loop."""

    def step(ids: Any, position: Any, history: Any, cache: Any) -> tuple[Any, Any]:
        return ops.take(cache["logits"], ids, axis=0), cache

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.int32),
            tf.TensorSpec([None, VOCAB_SIZE], tf.float32),
        ]
    )
    def search(limits: tf.Tensor, logits: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        longest = 7 if options.static_shapes else tf.reduce_max(limits)
        cache = {"logits": logits}
        found = beam_search(step, cache, limits, longest, options, **arguments)
        return found.ids, found.scores

    graph = search.get_concrete_function().graph.as_graph_def()
    functions = [function.node_def for function in graph.library.function]
    nodes = itertools.chain(graph.node, *functions)
    return dict(sorted(Counter(node.op for node in nodes).items()))


if __name__ == "__main__":
    content = {name: operations(options) for name, options in CASES.items()}
    GOLDEN.write_text(json.dumps(content, indent=2) + "\n")
