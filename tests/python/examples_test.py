"""Runs the scripts of python/examples: their output matches their README, and the files that they write open."""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree

import numpy
import service

sys.path.insert(0, str(service.ROOT / "tests/documentation"))
import run_documented

WORKER = os.environ.get("WORKER", "worker/lengthwise_worker")
EXAMPLES = service.ROOT / "python/examples"
README = EXAMPLES / "README.md"
# The comment before a script's output in the README.
SHOWN = r"<!-- printed by {script}, numbers of (?P<processor>[^\n]+) -->\n```\n(?P<printed>.*?)```"
PAPERS = ["decimal_addition.py", "latin_square.py", "positional_attention.py", "randomized_positional_encodings.py"]


class ExamplesTest(unittest.TestCase):
    def run_example(self, script, **environment):
        """Runs the script in a new directory and returns that directory. The output must match the README: exactly on a
        processor like the README's, elsewhere except for numbers, after a third of the steps. REWRITE=1 writes the output
        of this run into the README.
        """
        text = README.read_text()
        shown = re.search(SHOWN.format(script=re.escape(script)), text, re.S)
        self.assertIsNotNone(shown, f"{README} does not show what {script} prints")
        here = run_documented.processor()
        rewrites = bool(os.environ.get("REWRITE"))
        other_numbers = shown["processor"] != here and not rewrites
        program = (EXAMPLES / script).read_text()
        if other_numbers:
            program = re.sub(r'"(steps|epochs)": (\d+)', lambda given: f'"{given[1]}": {-(-int(given[2]) // 3)}', program)
        directory = service.new_directory()
        (directory / script).write_text(program)
        done = subprocess.run(
            [sys.executable, "-W", "error::UserWarning", script], cwd=directory, capture_output=True, text=True,
            timeout=600, check=False,
            env={
                **service.ENVIRONMENT,
                "PYTHONPATH": str(service.SITE),
                "MPLBACKEND": "Agg",
                "LENGTHWISE_SERVER_BINARY": str(pathlib.Path(service.SERVER).resolve()),
                "LENGTHWISE_WORKER_BINARY": str(pathlib.Path(WORKER).resolve()),
                **environment,
            },
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        if rewrites:
            block = f"<!-- printed by {script}, numbers of {here} -->\n```\n{run_documented.as_block(done.stdout)}\n```"
            README.write_text(text[: shown.start()] + block + text[shown.end() :])
        else:
            self.assertTrue(
                run_documented.same(shown["printed"], done.stdout, other_numbers),
                f"{README} shows\n{shown['printed']}\nand {script} prints\n{done.stdout}",
            )
        return directory

    def assert_written(self, directory, *names):
        """Checks that pictures and reports are complete."""
        for name in names:
            data = (directory / name).read_bytes()
            if name.endswith(".svg"):
                self.assertTrue(ElementTree.fromstring(data).tag.endswith("svg"), name)
            elif name.endswith(".png"):
                self.assertEqual(data[:8] + data[-8:-4], b"\x89PNG\r\n\x1a\nIEND", name)
            else:
                self.assertTrue(data.rstrip().endswith(b"</html>"), name)

    def test_encodings_are_compared_over_a_server(self):
        server = service.Server()
        with contextlib.ExitStack() as stack:
            stack.callback(server.kill)
            log = stack.enter_context(open(server.directory / "worker.log", "ab"))
            worker = subprocess.Popen(
                [WORKER, "--server", server.address, "--threads", "1"], stdout=log, stderr=log, env=service.ENVIRONMENT
            )
            stack.callback(worker.wait)
            stack.callback(worker.kill)
            self.run_example("compare_encodings.py", LENGTHWISE_SERVER=server.address)

    def test_randomized_positional_encodings(self):
        directory = self.run_example("randomized_positional_encodings.py")
        self.assert_written(directory, "accuracy_by_length.svg", "accuracy_and_loss.png", "randomized.html")
        self.assertEqual(json.loads((directory / "tensorboard/export.json").read_text())["trials"], 12)
        self.assertEqual(len(list((directory / "tensorboard").rglob("events.out.tfevents.*"))), 12)

    def test_latin_square(self):
        directory = self.run_example("latin_square.py")
        self.assert_written(directory, "epochs.svg", "attention.png", "latin_square.html")
        arrays = sorted((directory / "arrays").glob("*.npz"))
        self.assertEqual(len(arrays), 6)
        with numpy.load(arrays[0]) as one:
            self.assertTrue(any(name.startswith("attention") for name in one.files), one.files)

    def test_positional_attention(self):
        directory = self.run_example("positional_attention.py")
        self.assert_written(directory, "error_by_scale.svg", "loss.svg", "positional.html")
        self.assertEqual(len((directory / "tables/trials.csv").read_text().splitlines()), 1 + 8)

    def test_decimal_addition(self):
        directory = self.run_example("decimal_addition.py")
        self.assert_written(directory, "best_of_seeds.svg", "error_places.svg", "addition.html")
        self.assertIn("\\begin{tabular}", (directory / "addition.tex").read_text())

    def test_every_example_is_run(self):
        self.assertEqual(sorted(path.name for path in EXAMPLES.glob("*.py")), sorted([*PAPERS, "compare_encodings.py"]))


if __name__ == "__main__":
    unittest.main()
