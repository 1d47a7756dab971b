#!/usr/bin/env python3
"""Trains web.yaml and takes the pictures of web.md in Chromium. With --all, every view at a desk and on a phone, light and
dark, to look at.

    docs/web_pictures.py [--all FOLDER]    with `lengthwise` on the PATH
"""
import argparse
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests/python"))

import chromium

EXPERIMENT = "/experiments/tiny-1"
TRIAL = f"{EXPERIMENT}/trials/bucket_sort-encoder-randomized_sin_cos-lr0.002-seed0"
DESKTOP, PHONE = 1280, 390
READY = (
    "[...document.querySelectorAll('figure.chart')].every((one) => one.picture)"
    " && [...document.querySelectorAll('[data-lazy]')].every((one) => one.innerHTML)"
    " && document.getElementById('live').textContent === 'live'"
)


class Page:
    """The page of a running command, which prints its address."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(["lengthwise", *command], stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if found := re.match(r"(http://[\d.:]+)/\S*\?token=(\S+)", line):
                self.base, self.token = found.groups()
                return
        raise SystemExit(f"{command} printed no address")

    def take(self, path: str, picture: pathlib.Path, width: int, height: int, dark: bool = False, at: str = "") -> None:
        """The whole page if `height` is 0; with `at`, what stands from this element on."""
        with chromium.Page(f"{self.base}{path}?token={self.token}", width, height or 900, dark) as page:
            page.wait_for(READY + (" && document.querySelector('tbody tr')" if path == "/workers" else ""))
            if at:
                page.evaluate(f"document.querySelector('{at}').scrollIntoView()")
            page.screenshot(picture, whole=not height)

    def take_all(self, path: str, name: str, folder: pathlib.Path) -> None:
        for width in (DESKTOP, PHONE):
            for scheme in ("light", "dark"):
                self.take(path, folder / f"{name}_{width}_{scheme}.png", width, 0, scheme == "dark")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", type=pathlib.Path, metavar="FOLDER", help="also take every view, into this folder")
    folder = parser.parse_args().all
    with tempfile.TemporaryDirectory() as runs:
        run = Page("run", str(HERE / "web.yaml"), "--data_dir", runs, "--web")
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
            run.take_all("/workers", "workers", folder)
        run.process.communicate()
        web = Page("web", "--data_dir", runs, "--listen", "127.0.0.1:0")
        try:
            web.take(EXPERIMENT, HERE / "web_experiment.png", DESKTOP, 1420)
            web.take(EXPERIMENT, HERE / "web_phone.png", PHONE, 844, dark=True, at="#accuracy")
            if folder:
                for path, name in (("/", "experiments"), (EXPERIMENT, "experiment"), (TRIAL, "trial")):
                    web.take_all(path, name, folder)
        finally:
            web.process.send_signal(signal.SIGINT)
            web.process.wait(60)


if __name__ == "__main__":
    main()
