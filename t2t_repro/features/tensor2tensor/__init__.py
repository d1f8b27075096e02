"""tensor2tensor's commands (`t2t-trainer`, `t2t-decoder`, ...) by their old flags.

Each command prints the equivalent `t2t` command, and runs it. The tables of
flags, sets and problems are data; `docs/from_tensor2tensor.md` shows them. A package
written for tensor2tensor learns what to write instead of its imports.
"""

from t2t_repro.features import Feature

FEATURE = Feature()
