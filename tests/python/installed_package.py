"""Installs the Python package with pip, from the sources of a test's runfiles or of a checkout."""
import os
import pathlib
import shutil
import subprocess


def install(python: str, root: pathlib.Path, build: pathlib.Path, site: pathlib.Path) -> None:
    """Installs into `site`, with the packages of `python`. Builds in a copy below `build`, so that the sources stay
    clean.
    """
    ignored = shutil.ignore_patterns("build", "*.egg-info", "_proto", "_published")
    shutil.copytree(root / "python", build / "python", ignore=ignored)
    shutil.copytree(root / "proto", build / "proto")
    shutil.copytree(root / "experiments" / "published", build / "experiments" / "published")
    subprocess.run(
        [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index", "--no-build-isolation",
         "--no-deps", "--target", str(site), str(build / "python")],
        check=True,
        env={**os.environ, "PIP_CACHE_DIR": str(build / "cache"), "PIP_ROOT_USER_ACTION": "ignore"},
    )  # fmt: skip
