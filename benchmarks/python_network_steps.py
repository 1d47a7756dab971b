#!/usr/bin/env python3
"""What the process of a user's module costs: steps a second of `lengthwise run` beside those of a plain loop.

Both train the same module, the size of the paper's encoder, on batches of 128 sequences of 40 + 40 tokens, or as --batch
and --length say, with one thread each for the module and for the worker. Alternates between the two, because the machine's speed drifts. First prints what
`lengthwise check` says of the module on this device.

  python_network_steps.py [--steps N] [--rounds N] [--device DEVICE] [--batch N] [--length N]

On a GPU (`--device cuda:0`), the loop waits for it after the last step alone.

Needs a Python with PyTorch (LENGTHWISE_PYTHON_NETWORKS, default python3) and the built programs (LENGTHWISE, default
bazel-bin/client/lengthwise).
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile

MODULE = """
import torch

class Net(torch.nn.Module):
    def __init__(self, vocabulary, outputs, width=64, blocks=5):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.places = torch.nn.Embedding(128, width)
        layer = torch.nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
        self.blocks = torch.nn.TransformerEncoder(layer, blocks)
        self.out = torch.nn.Linear(width, outputs)

    def forward(self, tokens, positions, mask):
        return self.out(self.blocks(self.embedding(tokens) + self.places(positions)))
"""

# Samples are made once, so that the loop has nothing but the step.
LOOP = """
import sys, time, torch
sys.path.insert(0, ".")
from net import Net
torch.set_num_threads(1)
torch.manual_seed(0)
net = Net(3, 2).to("DEVICE")
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
n = 2 * LENGTH
inputs = torch.randint(3, (BATCH, n)), torch.arange(n).repeat(BATCH, 1), torch.ones(BATCH, n, dtype=torch.bool)
tokens, positions, mask, targets = (x.to("DEVICE") for x in (*inputs, torch.randint(2, (BATCH, LENGTH))))
def step():
    optimizer.zero_grad()
    logits = net(tokens, positions, mask)[:, -LENGTH:]
    torch.nn.functional.cross_entropy(logits.transpose(1, 2), targets).backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
def wait():
    next(net.parameters()).sum().item()
for _ in range(3):
    step()
wait()
start = time.perf_counter()
for _ in range(STEPS):
    step()
wait()
print((time.perf_counter() - start) / STEPS)
"""

SPECIFICATION = """
name: steps
tasks: reverse_string
networks: [{name: python, file: net.py, class: Net}]
encodings: own
learning_rates: 1e-3
training: {steps: STEPS, batch_size: BATCH, lengths: LENGTH..LENGTH}
evaluation: {lengths: LENGTH, sequences: 1}
"""


def output_of(command, folder):
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--length", type=int, default=40)
    arguments = parser.parse_args()
    lengthwise = os.path.abspath(os.environ.get("LENGTHWISE", "bazel-bin/client/lengthwise"))
    python = os.environ.get("LENGTHWISE_PYTHON_NETWORKS", "python3")
    os.environ["LENGTHWISE_PYTHON_DEVICE"] = arguments.device
    if subprocess.run([python, "-c", "import torch"], check=False, capture_output=True).returncode != 0:
        sys.exit(f"{python} has no PyTorch: set LENGTHWISE_PYTHON_NETWORKS to a Python that has it, such as /usr/bin/python3")
    plain, ours = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("net.py", MODULE), ("loop.py", LOOP), ("steps.yaml", SPECIFICATION)):
            for option in ("steps", "device", "batch", "length"):
                text = text.replace(option.upper(), str(getattr(arguments, option)))
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        subprocess.run([lengthwise, "check", "steps.yaml"], cwd=folder, check=False)
        for number in range(arguments.rounds):
            plain.append(float(output_of([python, "loop.py"], folder)))
            where = ["--data_dir", f"data{number}"]
            one = ["--device", "cpu", "--threads", "1", "--workers", "1"]
            output_of([lengthwise, "run", "steps.yaml", *where, *one], folder)
            shown = json.loads(output_of([lengthwise, "show", "steps-1/0", *where, "--output", "json"], folder))
            ours.append(shown["outcome"]["training_seconds"] / arguments.steps)
            print(f"plain loop {plain[-1]:.4f} s, lengthwise {ours[-1]:.4f} s a step on {arguments.device}", flush=True)
    ratio = statistics.median(ours) / statistics.median(plain)
    print(f"medians: plain {statistics.median(plain):.4f} s, lengthwise {statistics.median(ours):.4f} s, ratio {ratio:.3f}")


if __name__ == "__main__":
    main()
