#!/usr/bin/env python3
"""Checks that links in the documents and the alerts lead to existing files of the repository and, after "#", to existing anchors.

    tests/documentation/check_links.py        (from the root of the source tree; tests/run.sh does it)
"""

import pathlib
import re
import subprocess
import sys

ALERTS = pathlib.Path("deploy/prometheus/alerts.yml")
RUNBOOK = re.compile(r"runbook_url: (\S+)")
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)|(?:src|href)=\"(?!https?:|data:)([^\"]+)\"")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def anchors(document: pathlib.Path) -> set[str]:
    """The anchors that GitHub derives from headings, and those that the document defines."""
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    of_headings = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}
    return of_headings | set(re.findall(r'<a id="([^"]+)">', text))


def main() -> int:
    documents = subprocess.run(["git", "ls-files", "*.md"], capture_output=True, text=True, check=True).stdout.split()
    links = [
        (document, document.parent, link[1] or link[2])
        for document in map(pathlib.Path, documents)
        for link in LINK.finditer(CODE.sub("", document.read_text()))
    ] + [(ALERTS, pathlib.Path(), link) for link in RUNBOOK.findall(ALERTS.read_text())]
    broken = 0
    for document, folder, link in links:
        path, _, anchor = link.partition("#")
        target = folder / path if path else document
        if not target.exists():
            wrong = "no such file"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            wrong = f"{target.name} has no such heading or anchor"
        else:
            continue
        broken += 1
        print(f"{document}: link {link}: {wrong}")
    print(f"{len(links)} links in {len(documents)} documents and the alerts, {broken} broken")
    return 1 if broken or not links else 0


if __name__ == "__main__":
    sys.exit(main())
