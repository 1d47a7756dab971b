"""Installs the Python package with pip, from the sources of a test's runfiles or of a checkout."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile


def shared(python: str) -> pathlib.Path | None:
    """The folder for what tests share, in the environment of `python`. None if tests/run.sh did not make it, or for another
    user.
    """
    environment = pathlib.Path(python).absolute().parent.parent
    made_here = (environment / "requirements.txt").exists() and os.access(environment, os.W_OK)
    return environment / "shared" if made_here else None


def installed(python: str, root: pathlib.Path, directory: pathlib.Path) -> pathlib.Path:
    """Returns a folder with the package, installed with the packages of `python`. Works below `directory`, on a copy, so
    that the sources stay clean. Tests of the same sources share the folder.
    """
    build = directory / "build"
    ignored = shutil.ignore_patterns("build", "*.egg-info", "_proto", "_published", "__pycache__")
    shutil.copytree(root / "python", build / "python", ignore=ignored)
    shutil.copytree(root / "proto", build / "proto")
    shutil.copytree(root / "experiments" / "published", build / "experiments" / "published")
    together = shared(python)
    if together is None:
        _install(python, build, directory / "site")
        return directory / "site"
    # The environment's packages build this one.
    sources = hashlib.sha256((together.parent / "requirements.txt").read_bytes())
    for path in sorted(path for path in build.rglob("*") if path.is_file()):
        contents = path.read_bytes()
        sources.update(f"\n{path.relative_to(build)} {len(contents)}\n".encode() + contents)
    site = together / f"package-{sources.hexdigest()[:16]}"
    if not site.exists():
        together.mkdir(exist_ok=True)
        # Of an interrupted installation tests/run.sh deletes it, too.
        new = pathlib.Path(tempfile.mkdtemp(prefix="package-new-", dir=together))
        _install(python, build, new)
        try:
            new.rename(site)
        except OSError:  # another test was faster
            shutil.rmtree(new)
    os.utime(site)  # tests/run.sh deletes those that no test has used for a week
    return site


def _install(python: str, build: pathlib.Path, site: pathlib.Path) -> None:
    subprocess.run(
        [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index", "--no-build-isolation",
         "--no-deps", "--target", str(site), str(build / "python")],
        check=True,
        env={**os.environ, "PIP_CACHE_DIR": str(build / "cache"), "PIP_ROOT_USER_ACTION": "ignore"},
    )  # fmt: skip
