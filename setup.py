"""Map the top-level folders `problems/` and `hparams/` into the package.

They can be imported only as `t2t_repro.problems` and `t2t_repro.hparams`, so that an
installed wheel adds nothing but `t2t_repro` to site-packages. The rest of the package's
metadata is in `pyproject.toml`.
"""

from setuptools import find_packages, setup

CATALOGUES = ("problems", "hparams")

packages = find_packages(include=["t2t_repro", "t2t_repro.*"])
package_dir = {"t2t_repro": "t2t_repro"}
for folder in CATALOGUES:
    package_dir[f"t2t_repro.{folder}"] = folder
    packages.append(f"t2t_repro.{folder}")
    packages.extend(f"t2t_repro.{folder}.{name}" for name in find_packages(folder))

setup(packages=packages, package_dir=package_dir)
