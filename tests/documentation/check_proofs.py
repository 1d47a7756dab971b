#!/usr/bin/env python3
"""Checks that every test named as proof in GUARANTEES.md and THREAT_MODEL.md exists.

    tests/documentation/check_proofs.py        (from the root of the source tree; tests/run.sh does it)

For `//folder:target` it looks for the target; for a test or suite named after it, for the test in the target's source,
or in the folder if the target has none of its name; for `folder/name_test.cc`, `name_test.cc` or `name_test.py`, for the
file, and for test_name after it, for the test in it; for `name_test`, for a target in any folder. Each flood that
floods_test.py runs stands in GUARANTEES.md, and it runs each that stands there. Prints what is missing and fails.
"""
import pathlib
import re
import subprocess
import sys

DOCUMENTS = ("GUARANTEES.md", "THREAT_MODEL.md")
REFERENCE = re.compile(
    r"//(?P<package>[\w/]+)(?P<target>:\w+|/\.\.\.)"
    r"|`(?P<file>(?:\w+/)*\w+\.(?:cc|py))`"
    r"|(?<!\w)(?P<python>test_[a-z0-9_]+)"
    r"|`(?P<alone>\w+_test)`"
    # At least two words: the name of a test or of a suite.
    r"|(?<![\w`/.])(?P<name>(?=\w*[a-z])(?:[A-Z][a-z0-9]*){2,})\b(?!`)")
# Other words with capitals inside.
NO_TESTS = {"KiB", "MiB", "GiB"}


def has_target(package, name):
    build_file = pathlib.Path(package, "BUILD.bazel")
    if not build_file.exists():
        return False
    text = build_file.read_text()
    # Matches a target declared by name, as a pattern in a list comprehension, or by its source.
    patterns = [re.escape(word).replace("%s", r"\w*") for word in re.findall(r'name = "([\w%]+)"', text)]
    listed = f'"{name}"' in text or f'"{name.removesuffix("_test")}"' in text
    return (any(re.fullmatch(pattern, name) for pattern in patterns)
            or listed and pathlib.Path(package, name + ".cc").exists())


def has_test(package, target, name):
    """Returns True if the target's source, or the folder if there is no such file, has a test or suite of this name."""
    test = re.compile(r"TEST(?:_[FP])?\(\s*(?:\w+,\s*%s|%s,\s*\w+)\s*\)" % (name, name))
    source = pathlib.Path(package, f"{target}.cc")
    sources = [source] if source.exists() else pathlib.Path(package).glob("*.cc")
    return any(test.search(source.read_text()) for source in sources)


def check(document, files):
    package = target = None
    named = []
    for number, line in enumerate(pathlib.Path(document).read_text().splitlines(), 1):
        for match in REFERENCE.finditer(line):
            reference = match.group(0).strip("`")
            found = True
            if match["package"]:
                package, target = match["package"], match["target"][1:]
                found = pathlib.Path(package).is_dir() if target == "..." else has_target(package, target)
            elif match["file"]:
                named = [file for file in files if file == reference or file.endswith("/" + reference)]
                found = bool(named)
            elif match["python"]:
                found = any(f"def {reference}(" in pathlib.Path(file).read_text() for file in named)
            elif match["alone"]:
                folders = {str(pathlib.Path(file).parent) for file in files if file.endswith("BUILD.bazel")}
                folders = [folder for folder in folders if has_target(folder, reference)]
                found = bool(folders)
                if found:
                    package, target = package if package in folders else min(folders), reference
            elif line.startswith("|") and match.start() > line.rstrip(" |").rfind(" | ") and reference not in NO_TESTS:
                found = package is not None and has_test(package, target, reference)
            if not found:
                yield f"{document}:{number}: {reference} does not exist"


def check_floods():
    floods = re.findall(r'^    "(\w+)": \w+,$', pathlib.Path("tests/floods/floods.py").read_text(), re.MULTILINE)
    tested = pathlib.Path("tests/floods/floods_test.py").read_text()
    promises = pathlib.Path("GUARANTEES.md").read_text()
    named = re.findall(r"`(\w+)`", " ".join(re.findall(r"`//tests/floods:floods_test` \(([^)]*)\)", promises)))
    for flood in floods:
        if f'"{flood}"' in tested and flood not in named:
            yield f"GUARANTEES.md: names no line that the flood {flood} tests"
    for flood in named:
        if flood not in floods or f'"{flood}"' not in tested:
            yield f"GUARANTEES.md: floods_test.py does not run the flood {flood}"


def main():
    files = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], check=True,
                           capture_output=True, text=True).stdout.split()
    problems = [problem for document in DOCUMENTS for problem in check(document, files)] + list(check_floods())
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
