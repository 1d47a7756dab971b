"""The PyTorch module of docs/exported_weights.md computes what a worker computes."""
import json
import os
import pathlib
import random
import re
import subprocess
import unittest

import numpy
import safetensors
import service
from service import lengthwise

WORKER = os.environ.get("WORKER", "worker/lengthwise_worker")
PAGE = (service.ROOT / "docs/exported_weights.md").read_text()
# Debian's, because PyTorch of deploy/install.sh is only a library.
PYTHON = "/usr/bin/python3"

SYMBOLS = 4
HEADS = 2
INPUTS = [[3, 1, 0, 2], [2, 2, 1, 0, 3, 1], [0, 3]]
# Continues the page's module: prints the logarithms of the probabilities of every input's first output.
PROGRAM = """
import json, sys
path, encoding, heads, symbols, *inputs = sys.argv[1:]
model = Encoder(path, int(heads))
for given in map(json.loads, inputs):
    tokens = torch.tensor([given + [int(symbols)]])
    positions = torch.arange(tokens.size(1))
    added = {"none": lambda: 0.0, "sin_cos": lambda: sinusoids(positions, model.embedding.embedding_dim),
             "learned": lambda: model.table[positions]}[encoding]()
    with torch.no_grad():
        print(json.dumps(model(tokens, 1, added)[0, 0].log_softmax(0).tolist()))
"""


class ExportedWeightsTest(unittest.TestCase):
    def setUp(self):
        done = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            why = done.stderr.strip().rpartition("\n")[2]
            self.skipTest(f"{PYTHON} cannot import torch ({why}); tests/run.sh installs Debian's python3-torch")

    def test_module_of_the_page_computes_the_logits(self):
        directory = service.new_directory()
        # Each symbol as the only target of each input, at a length of its own: the loss at a length is minus the
        # logarithm of a probability, so the losses determine the logits up to a constant of each input.
        tested = [(given, symbol) for given in INPUTS for symbol in range(SYMBOLS)]
        with open(directory / "test.jsonl", "w") as file:
            for length, (given, symbol) in enumerate(tested, 1):
                print(json.dumps({"input": given, "target": [symbol], "length": length}), file=file)
        with open(directory / "train.jsonl", "w") as file:
            source = random.Random(0)
            for _ in range(200):
                given = source.choices(range(SYMBOLS), k=source.randint(7, 9))
                print(json.dumps({"input": given, "target": [given[0]], "length": 1}), file=file)
        programs = {
            "LENGTHWISE_CLIENT_BINARY": service.CLIENT, "LENGTHWISE_SERVER_BINARY": service.SERVER,
            "LENGTHWISE_WORKER_BINARY": WORKER,
        }  # fmt: skip
        os.environ.update({name: str(pathlib.Path(path).resolve()) for name, path in programs.items()})
        experiment = lengthwise.run(
            {
                "name": "weights",
                "tasks": {"name": "examples", "train": str(directory / "train.jsonl"), "test": str(directory / "test.jsonl"),
                          "target_length": "any"},
                "networks": {"name": "encoder", "blocks": 2, "heads": HEADS, "d_model": 16},
                "encodings": ["none", "sin_cos", "learned"],
                "learning_rates": 0.003,
                "training": {"steps": 30, "batch_size": 16},
                "evaluation": {"lengths": f"1..{len(tested)}"},
            },
            data_dir=directory / "data", device="cpu",
        )  # fmt: skip
        (module,) = re.findall(r"^```python\n(import math\n.*?)^```$", PAGE, re.M | re.S)
        (directory / "encoder.py").write_text(module + PROGRAM)
        # Debian has no safetensors, and NumPy's releases must not be mixed.
        (directory / "site").mkdir()
        (directory / "site/safetensors").symlink_to(pathlib.Path(safetensors.__file__).parent)
        measured = experiment.accuracies().set_index(["trial", "length"])["loss"]
        for trial in experiment.trials():
            with self.subTest(trial.encoding):
                path = directory / f"{trial.encoding}.safetensors"
                trial.save_model(path)
                done = subprocess.run(
                    [PYTHON, directory / "encoder.py", path, trial.encoding, str(HEADS), str(SYMBOLS),
                     *map(json.dumps, INPUTS)],
                    env={"PYTHONPATH": str(directory / "site")}, capture_output=True, text=True, check=False,
                )  # fmt: skip
                self.assertEqual(done.returncode, 0, done.stderr)
                computed = [value for line in done.stdout.splitlines() for value in json.loads(line)]
                ours = [-measured[trial.name, length] for length in range(1, len(tested) + 1)]
                numpy.testing.assert_allclose(computed, ours, rtol=0, atol=1e-5)
                self.assertGreater(numpy.ptp(computed), 0.1, "the model has learned something to compare")
                self.check_shapes(trial)

    def check_shapes(self, trial):
        """The page's table names every weight, with its shape."""
        parameters = trial.specification["network"]["parameters"]
        width = int(parameters["d_model"])
        sizes = {"input symbols": SYMBOLS, "output symbols": SYMBOLS, "extra_input_columns": 0, "d_model": width}
        sizes["d_ff"] = 4 * width
        named = {}
        for names, shapes in re.findall(r"^\| (`(?:embedding|blocks|output)[^|]*) \| ([^|]*) \|$", PAGE, re.M):
            first, *others = re.findall("`([^`]+)`", names)
            several = [text.split(", ") for text in shapes.split("; ")]
            for i, name in enumerate([first, *others]):
                full = first.rpartition(".")[0] + name if name.startswith(".") else name
                shape = several[i if len(several) > 1 else 0]
                terms = [one.replace("`", "").split(" + ") for one in shape]
                named[full] = tuple(sum(int(sizes.get(term, term)) for term in of_axis) for of_axis in terms)
        for name, values in trial.model().items():
            if not name.startswith("encoding."):
                self.assertEqual(named[re.sub(r"\d+", "B", name)], values.shape, name)


if __name__ == "__main__":
    unittest.main()
