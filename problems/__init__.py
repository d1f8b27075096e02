"""The catalogue of problems, imported as `t2t_repro.problems`.

A module here registers problems and does nothing else: a problem's name, docstring,
settings and, if it is small, the function that makes its pairs. Code that problems
share is in `t2t_repro.data`. Siblings import each other relatively
(`from .translation import ...`), the package absolutely.
"""

if __name__ != "t2t_repro.problems":
    raise ImportError(
        f"Import the problems as t2t_repro.problems, not as {__name__}: a second name "
        "would register every problem twice."
    )

# Module -> the features that its problems need.
MODULES = {
    "algorithmic": (),
    "parsing": ("parsing",),
    "parsing_synthetic": ("parsing", "synthetic"),
    "translate_ende_synthetic": ("synthetic",),
    "translation": (),
}
