"""Commands that list problems must respond at once."""

from __future__ import annotations

import subprocess
import sys


def test_registering_the_problems_imports_neither_the_grammar_nor_a_framework():
    program = (
        "import sys\n"
        "from t2t_repro import catalogue, registry\n"
        "catalogue.problem('parsing_synthetic')\n"
        "assert 'translate_ende_synthetic' in registry.problems\n"
        "slow = {'t2t_repro.features.synthetic.synthetic_corpus', 'tensorflow',\n"
        "        'tensorflow_datasets', 'keras'}\n"
        "print(sorted(slow & sys.modules.keys()))\n"
    )
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
