"""The pages of results: recorded numbers, and what writes the pages from them.

Only a checkout has this package, and imports it with `docs` on the path of modules.
`t2t reproduce --page` and `--record` do, and `benchmarks/accelerator/rows`. It also
holds experiments that only the documentation describes: `anaphora`, `alignment_error`
and `silver`.
"""
