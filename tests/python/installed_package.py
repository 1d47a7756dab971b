"""The Python package as pip installs it, from the sources of a test's runfiles or of a checkout."""
import os
import pathlib
import shutil
import subprocess


def install(python: str, root: pathlib.Path, build: pathlib.Path, site: pathlib.Path) -> None:
    """Into `site`, with the packages of `python`; from a copy in `build`: what is built beside it stays there."""
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
