"""The program that computes a user's module, spoken to as a worker does. Needs Python with PyTorch."""

import array
import importlib.util
import itertools
import json
import math
import mmap
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child.py")
TESTING = os.path.join(os.path.dirname(CHILD), "testing")
PYTHON = os.environ.get("LENGTHWISE_PYTHON_NETWORKS", "/usr/bin/python3")
TEMPORARY = tempfile.TemporaryDirectory()
WARM_PYTHON = os.path.join(TEMPORARY.name, "warm_python")


def setUpModule():
    """Starts WARM_PYTHON."""
    warm = subprocess.Popen([PYTHON, "-B", os.path.join(TESTING, "warm_python.py"), WARM_PYTHON])
    unittest.addModuleCleanup(warm.wait)
    unittest.addModuleCleanup(warm.kill)
    while not os.path.exists(WARM_PYTHON):
        if warm.poll() is not None:
            raise RuntimeError("warm_python.py has ended")
        time.sleep(0.01)


LINEAR = """
    import torch
    class Net(torch.nn.Module):
        def __init__(self, vocabulary, outputs, width=4):
            super().__init__()
            self.embedding = torch.nn.Embedding(vocabulary, width)
            self.out = torch.nn.Linear(width, outputs)
        def forward(self, tokens, positions, mask):
            return self.out(self.embedding(tokens))
"""


GOLDEN = "tests/golden/randomized_positional_encodings/model"
EMBEDDING = "transformer_encoder/transformer_embedder/~embed_sequences/linear/w"


CACHED = """
    import torch
    class Net(torch.nn.Module):
        def __init__(self, vocabulary, outputs, width=4):
            super().__init__()
            self.embedding = torch.nn.Embedding(vocabulary, width)
            self.gru = torch.nn.GRU(width, width, batch_first=True)
            self.out = torch.nn.Linear(width, outputs)
        def forward(self, tokens, positions, cache=None):
            cache = {} if cache is None else cache
            features = self.embedding(tokens) + positions.unsqueeze(-1)
            features, cache["state"] = self.gru(features, cache.get("state"))
            return self.out(features)
"""

# With buffers, random numbers, and a parameter that `forward` changes in place.
NOISY = """
    import torch
    class Net(torch.nn.Module):
        def __init__(self, vocabulary, outputs, width=4):
            super().__init__()
            self.embedding = torch.nn.Embedding(vocabulary, width)
            self.norm = torch.nn.BatchNorm1d(width)
            self.steps = torch.nn.Parameter(torch.zeros(2), requires_grad=False)
            self.out = torch.nn.LazyLinear(outputs)
            self.register_buffer("two", torch.tensor(2.0, dtype=torch.float64), persistent=False)
        def forward(self, tokens, positions, mask):
            self.steps.add_(float(self.training))
            features = self.norm(self.embedding(tokens).transpose(1, 2)).transpose(1, 2) * self.two
            return self.out(torch.nn.functional.dropout(features, 0.5, self.training)) * mask.unsqueeze(-1)
"""

# Modules that are unusual and right.
ODD = {
    "frozen parameters": LINEAR.replace("self.out =", "self.embedding.requires_grad_(False)\n            self.out ="),
    "parameters in double precision": LINEAR.replace(
        "return self.out", "assert self.out.weight.dtype == torch.float32\n            return self.out"
    ).replace("torch.nn.Linear(width, outputs)", "torch.nn.Linear(width, outputs).double()"),
    "a parameter of no numbers": LINEAR.replace(
        "self.out =", "self.none = torch.nn.Parameter(torch.zeros(0, 3))\n            self.out ="
    ),
    "a parameter of one number": LINEAR.replace(
        "self.out =", "self.scale = torch.nn.Parameter(torch.tensor(2.0))\n            self.out ="
    ).replace("return self.out", "return self.scale * self.out"),
    "buffers of whole numbers and truth values": LINEAR.replace(
        "self.out =",
        "self.register_buffer('steps', torch.tensor(7))\n"
        "            self.register_buffer('seen', torch.zeros(3, dtype=torch.bool))\n"
        "            self.out =",
    ).replace("return self.out", "self.steps += 1\n            self.seen[1] = True\n            return self.out"),
    "complex numbers inside": LINEAR.replace(
        "self.out(self.embedding(tokens))", "self.out(torch.fft.ifft(torch.fft.fft(self.embedding(tokens))).real)"
    ),
    "a constant of complex numbers": LINEAR.replace(
        "self.out =", "self.register_buffer('turns', torch.ones(4) * 1j, persistent=False)\n            self.out ="
    ).replace("self.embedding(tokens))", "(self.embedding(tokens) * self.turns).imag)"),
    "logits in half precision": LINEAR.replace("tokens))", "tokens)).bfloat16()"),
    "a weight of spectral norm": LINEAR.replace(
        "torch.nn.Linear(width, outputs)", "torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(width, outputs))"
    ),
    "weights made of others": LINEAR.replace(
        "torch.nn.Linear(width, outputs)", "torch.nn.utils.weight_norm(torch.nn.Linear(width, outputs))"
    ).replace(
        "self.out =", "torch.nn.utils.parametrizations.orthogonal(self.embedding)\n            self.out ="
    ),
    "names with other characters": LINEAR.replace(
        "self.out =", "self.parts = torch.nn.ModuleDict({'a/b ü': torch.nn.Linear(4, 4)})\n            self.out ="
    ).replace("self.embedding(tokens))", "self.parts['a/b ü'](self.embedding(tokens)))"),
    "buffers that are missing or constant": LINEAR.replace(
        "self.out =",
        "self.register_buffer('missing', None)\n"
        "            self.register_buffer('pairs', torch.eye(4).to_sparse(), persistent=False)\n"
        "            self.out =",
    ).replace(
        "self.embedding(tokens))", "torch.sparse.mm(self.pairs, self.embedding(tokens)[0].T).T.unsqueeze(0))"
    ),
    "inputs that are changed in place": LINEAR.replace(
        "return self.out", "mask.zero_(), positions.zero_(), tokens.add_(1).remainder_(5)\n            return self.out"
    ),
    "a part that is computed again": LINEAR.replace(
        "self.out(self.embedding(tokens))", "torch.utils.checkpoint.checkpoint(self.out, self.embedding(tokens))"
    ).replace("import torch\n", "import torch, torch.utils.checkpoint\n"),
    "no gradients by default": "import torch\ntorch.set_grad_enabled(False)\n" + textwrap.dedent(LINEAR),
    "threads that go on": LINEAR.replace(
        "return self.out",
        "import threading, time\n"
        "            threading.Thread(target=time.sleep, args=(3600,)).start()\n"
        "            return self.out",
    ),
    "a data class": "import dataclasses\n@dataclasses.dataclass\nclass Size:\n    width: int = 4\n"
    + textwrap.dedent(LINEAR).replace("width=4", "size=Size()").replace("width", "size.width"),
    "a factory": textwrap.dedent(LINEAR).replace("class Net", "class Inner")
    + "def Net(vocabulary, outputs):\n    return Inner(vocabulary, outputs)\n",
    "a command line": "import argparse\nargparse.ArgumentParser().parse_args()\n" + textwrap.dedent(LINEAR),
    "any further argument": LINEAR.replace("tokens, positions, mask", "tokens, **more").replace(
        "return self.out", "assert set(more) == {'positions', 'mask'}\n            return self.out"
    ),
}


def flat(values):
    return [number for one in values for number in flat(one)] if isinstance(values, list) else [values]


def furthest(ours, expected):
    assert len(ours) == len(expected)
    return max(abs(a - b) for a, b in zip(ours, expected))


def our_name(reference):
    """The name of a parameter of the reference implementation here."""
    if reference in ("linear/w", "linear/b", EMBEDDING):
        return {"linear/w": "output", "linear/b": "output_bias"}.get(reference, "embedding")
    place, *rest = reference.split("/")[1:]
    stem, _, number = place.rpartition("_")
    stem, number = (stem, int(number)) if number.isdigit() else (place, 0)
    if stem == "layer_norm":
        return f"blocks.{number // 2}.{('attention', 'feed_forward')[number % 2]}.norm.{rest[0]}"
    if stem == "linear":
        return f"blocks.{number // 2}.feed_forward.{('up', 'down')[number % 2]}{'_bias' * (rest[0] == 'b')}"
    which = {"linear": "query", "linear_1": "key", "linear_2": "value", "linear_3": "output"}[rest[0]]
    return f"blocks.{number}.attention.{which}"


def cross_entropy_gradient(rows, targets):
    """Of the mean loss, by the logits."""
    gradient = []
    for row, target in zip(rows, targets):
        total = sum(math.exp(logit) for logit in row)
        gradient += [(math.exp(logit) / total - (i == target)) / len(rows) for i, logit in enumerate(row)]
    return gradient


class Parent:
    """A parent of one child, with float32 numbers. The child's Python is PYTHON if it is `cold` or has an environment of its
    own, otherwise WARM_PYTHON.
    """

    def __init__(
        self,
        source,
        files=None,
        name="Net",
        arguments=None,
        seeds=(1,),
        vocabulary=5,
        outputs=3,
        entry="net.py",
        environment=None,
        cold=False,
        device="cpu",
    ):
        self.folder = tempfile.mkdtemp()
        archive = os.path.join(self.folder, "archive.json")
        content = {"entry": entry, "files": {entry: textwrap.dedent(source), **(files or {})}}
        if "__init__.py" in content["files"]:
            content["entry"] = "__init__.py"
        with open(archive, "w") as file:
            json.dump(content, file)
        ours, theirs = socket.socketpair()
        self.files = [os.memfd_create("state", 0), os.memfd_create("inputs", 0)]
        self.stream = ours.makefile("rwb")
        self.ours = ours
        work = os.path.join(self.folder, "work")
        os.mkdir(work)
        with open(CHILD) as file:
            code = file.read()
        fds = [theirs.fileno(), *self.files]
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self.process = subprocess.Popen(
            [PYTHON if cold or environment else WARM_PYTHON, "-B", "-c", code, *map(str, fds), work, str(memory)],
            pass_fds=fds,
            cwd=work,
            env={**os.environ, **(environment or {})},
            stdout=subprocess.DEVNULL,
            stderr=None,
        )
        theirs.close()
        self.count, self.vocabulary, self.outputs = len(seeds), vocabulary, outputs
        self.declared = self.ask(
            do="build",
            archive=archive,
            arguments=arguments or {},
            vocabulary=vocabulary,
            outputs=outputs,
            dtype="float32",
            device=device,
            heads=0,
            seeds=list(seeds),
            **{"class": name},
        )
        if "error" in self.declared:
            return
        offsets, row = [], 0
        for slot in self.declared["state"]:
            offsets.append(row)
            size = 1
            for extent in slot["shape"]:
                size *= extent
            row += size
        self.offsets, self.row = offsets, row
        self.all = 2 * row * self.count
        os.ftruncate(self.files[0], 4 * self.all)
        self.state = mmap.mmap(self.files[0], 4 * self.all)
        self.bound = self.ask(do="bind", row=row, offsets=offsets, parameters=0, gradients=row * self.count)

    def ask(self, **request):
        self.stream.write(json.dumps(request).encode() + b"\n")
        self.stream.flush()
        return json.loads(self.stream.readline() or b'{"error": "the child has ended"}')

    def forward(self, tokens, outputs, training=False, seed=7, member=0, number=0, start=0, cached=-1, own=None):
        """Returns the logits, or the answer with an error. The pass of this number has its inputs at `start`. The module's
        cache has `cached` tokens before these. The sequences may have their `own` positions."""
        rows, n = len(tokens), len(tokens[0])
        places = own or [range(max(0, cached), max(0, cached) + n)]
        at = {"tokens": start, "positions": start + 8 * rows * n, "logits": start + 8 * (rows + len(places)) * n}
        count = rows * outputs * self.outputs
        at["gradient"] = at["logits"] + 4 * count
        at["bias"] = 0
        size = at["gradient"] + 4 * count
        os.ftruncate(self.files[1], max(size, os.fstat(self.files[1]).st_size))
        memory = mmap.mmap(self.files[1], os.fstat(self.files[1]).st_size)
        memory[start : at["logits"]] = struct.pack(f"{(rows + len(places)) * n}q", *itertools.chain(*tokens, *places))
        self.gradient = memoryview(memory)[at["gradient"] : size].cast("f")
        self.set_gradient([1.0] * count)
        answer = self.ask(
            do="forward",
            member=member,
            seed=seed,
            training=training,
            cached=cached,
            real_positions=False,
            rows=rows,
            tokens=n,
            outputs=outputs,
            positions=[len(places), n],
            bias=[0, n, n + max(0, cached)],
            at=at,
            **{"pass": number},
        )
        if "error" in answer:
            return answer
        return struct.unpack(f"{count}f", memory[at["logits"] : at["gradient"]])

    def set_gradient(self, values):
        """Chooses the gradient of the last forward pass's logits."""
        self.gradient[:] = array.array("f", values)

    def numbers(self):
        return struct.unpack(f"{self.all}f", self.state[: 4 * self.all])

    def parameters(self, member=0):
        return self.numbers()[member * self.row : (member + 1) * self.row]

    def gradients(self, member=0):
        return self.numbers()[(self.count + member) * self.row : (self.count + member + 1) * self.row]

    def close(self):
        self.stream.close()
        self.ours.close()
        self.process.wait(30)
        shutil.rmtree(self.folder)


class ChildTest(unittest.TestCase):
    def parent(self, *args, **kwargs):
        parent = Parent(*args, **kwargs)
        self.addCleanup(parent.close)
        return parent

    def test_declares_parameters_by_name_and_shape(self):
        parent = self.parent(LINEAR, arguments={"width": 6})
        self.assertEqual(
            [(s["name"], s["shape"], s["trained"]) for s in parent.declared["state"]],
            [("embedding.weight", [5, 6], True), ("out.weight", [3, 6], True), ("out.bias", [3], True)],
        )

    def test_gradients_are_added_to_the_state(self):
        parent = self.parent(LINEAR)
        parent.forward([[1, 2, 3], [4, 0, 1]], outputs=2, training=True)
        self.assertEqual(parent.ask(do="backward", bias=False, **{"pass": 0}), {})
        # The bias has the sum of the logits' gradients: a one for each of 2 rows and 2 outputs.
        self.assertEqual(parent.gradients()[-3:], (4.0, 4.0, 4.0))
        parent.forward([[1, 2, 3], [4, 0, 1]], outputs=2, training=True)
        parent.ask(do="backward", bias=False, **{"pass": 0})
        self.assertEqual(parent.gradients()[-3:], (8.0, 8.0, 8.0))

    def test_copy_of_the_state_has_the_same_bits(self):
        """As on a GPU, tensors of `cpu:0` are no views of the state. Their numbers must be those of the views."""
        for source in (NOISY, CACHED, LINEAR.replace("(vocabulary, width)", "(vocabulary, width, sparse=True)")):
            seen = []
            for device in ("cpu", "cpu:0"):
                parent = self.parent(source, seeds=(3, 9), device=device)
                self.assertEqual(parent.declared["device"], device)
                seen.append([parent.numbers()])
                for member, number in ((0, 0), (1, 0), (1, 1)):
                    # The parent's optimizer, between the calls.
                    parent.state[: 4 * parent.row] = array.array("f", [0.5 * x for x in parent.parameters()]).tobytes()
                    text = [[1, 2, 3], [4, member, 1]]
                    seen[-1].append(parent.forward(text, 2, True, 5, member, number, 4096 * number))
                    seen[-1].append(parent.numbers())
                for number in (1, 0):
                    self.assertEqual(parent.ask(do="backward", bias=False, **{"pass": number}), {})
                    seen[-1].append(parent.numbers())
                seen[-1].append(parent.forward([[1, 2, 3]], 3))
            self.assertEqual(seen[0], seen[1])
            self.assertTrue(any(seen[0][-2][2 * parent.row :]))

    def test_check_computes_on_a_copy_of_the_state(self):
        told = self.checked(NOISY, device="cpu:0", causal=False)
        self.assertEqual(told["wrong"], [])
        self.assertIn("a resumed step equals one that was not interrupted", told["lines"])
        self.assertRegex(told["lines"][1], r"; torch [0-9.a]+.*, on cpu:0$")

    def test_device_that_is_not_there_is_named(self):
        for device, why in (("cuda:99", "cannot compute on cuda:99: "), ("toaster", "cannot compute on toaster: ")):
            parent = self.parent(LINEAR, device=device)
            self.assertIn(why, parent.declared["error"])
            self.assertIn("; name another device with --python_device or", parent.declared["error"])
            # Another worker may have it.
            self.assertTrue(parent.declared["is_local"])

    def test_memory_of_a_device_may_suffice_elsewhere(self):
        error = "class OutOfMemoryError(RuntimeError):\n    pass\nraise OutOfMemoryError('CUDA out of memory')\n"
        declared = self.parent(error).declared
        self.assertIn("net.py:3: OutOfMemoryError: CUDA out of memory", declared["error"])
        self.assertTrue(declared["is_local"])
        self.assertFalse(self.parent("raise RuntimeError").declared["is_local"])

    def test_passes_of_a_step_have_their_own_inputs(self):
        texts = [[[1, 2, 3]], [[4, 0]]]
        alone = self.parent(LINEAR)
        for text in texts:
            alone.forward(text, len(text[0]), training=True)
            alone.ask(do="backward", bias=False, **{"pass": 0})
        together = self.parent(LINEAR)
        for number, text in enumerate(texts):
            together.forward(text, len(text[0]), training=True, number=number, start=4096 * number)
        for number in (1, 0):
            self.assertEqual(together.ask(do="backward", bias=False, **{"pass": number}), {})
        for ours, expected in zip(together.gradients(), alone.gradients()):
            self.assertAlmostEqual(ours, expected, 5)

    def test_cache_continues_a_text(self):
        parent = self.parent(CACHED)
        self.assertTrue(parent.declared["cache"])
        for text in ([1, 2, 3, 4], [0, 3, 2, 1]):
            whole = parent.forward([text], 4)
            parts = [parent.forward([text[a:b]], b - a, cached=a) for a, b in ((0, 2), (2, 3), (3, 4))]
            self.assertLess(furthest(flat([list(part) for part in parts]), whole), 1e-6)

    def test_attention_comes_from_the_method(self):
        method = "        def attention(self):\n            return [torch.full((2, 1, 3, 3), layer + 0.5) for layer in range(2)]\n"
        parent = self.parent(LINEAR + method)
        self.assertTrue(parent.declared["attention"])
        parent.forward([[1, 2, 3], [3, 2, 1]], 1)
        self.assertEqual(parent.ask(do="attention", member=0, at=4096), {"shape": [2, 2, 1, 3, 3]})
        memory = mmap.mmap(parent.files[1], os.fstat(parent.files[1]).st_size)
        self.assertEqual(struct.unpack("36f", memory[4096 : 4096 + 4 * 36]), (0.5,) * 18 + (1.5,) * 18)

    def test_attention_of_another_shape_is_explained(self):
        parent = self.parent(LINEAR + "        def attention(self):\n            return [torch.zeros(3)]\n")
        parent.forward([[1, 2, 3]], 1)
        self.assertIn("`attention` returned [[3]]; expected", parent.ask(do="attention", member=0, at=4096)["error"])

    def test_layer_named_attention_gives_no_maps(self):
        source = LINEAR.replace("self.out =", "self.attention = torch.nn.Linear(1, 1)\n            self.out =")
        self.assertFalse(self.parent(source).declared["attention"])

    def test_odd_modules_train(self):
        for what, source in ODD.items():
            with self.subTest(what):
                self.assertEqual(self.error(source), "")

    def test_file_may_have_any_name(self):
        self.assertNotIn("error", self.parent(LINEAR, entry="mein netz ü.txt").declared)

    def checked(self, source, **more):
        """What `check` says of a module."""
        parent = self.parent(source)
        archive = os.path.join(parent.folder, "checked.json")
        with open(archive, "w") as file:
            json.dump({"entry": "net.py", "files": {"net.py": textwrap.dedent(source)}}, file)
        given = {"vocabulary": 5, "outputs": 5, "rows": 4, "tokens": 0, "outputs_read": 6, "causal": True}
        given |= {"dtype": "float32", "heads": 0, **more}
        return parent.ask(do="check", archive=archive, arguments={}, **{"class": "Net"}, **given)

    def test_check_compares_the_cache_with_whole_texts(self):
        self.assertIn("logits with `cache` equal those without", self.checked(CACHED)["lines"])
        (wrong,) = self.checked(CACHED.replace('cache.get("state")', "None"))["wrong"]
        self.assertIn("logits with `cache` differ", wrong)

    def test_check_finds_state_that_no_checkpoint_has(self):
        hidden = "self.calls = getattr(self, 'calls', 0) + 1\n            return self.calls * self.out"
        unseeded = "return __import__('secrets').randbits(30) * self.out"
        for source in (LINEAR.replace("return self.out", hidden), LINEAR.replace("return self.out", unseeded)):
            (wrong,) = self.checked(source)["wrong"]
            self.assertIn("a resumed step differs", wrong)
        told = self.checked(LINEAR)
        self.assertEqual(told["wrong"], [])
        self.assertIn("a resumed step equals one that was not interrupted", told["lines"])

    def test_check_names_parameters_without_a_gradient(self):
        source = LINEAR.replace("self.out =", "self.unused = torch.nn.Linear(2, 2)\n            self.out =")
        self.assertEqual(self.checked(source)["wrong"], ["no gradient reaches unused.weight, unused.bias"])

    def test_check_finds_sequences_that_depend_on_each_other(self):
        source = LINEAR.replace("self.embedding(tokens))", "self.embedding(tokens) + self.embedding(tokens).mean(0))")
        (wrong,) = self.checked(source)["wrong"]
        self.assertIn("depend on the others of its batch", wrong)

    def test_check_lets_a_module_change_its_inputs(self):
        source = LINEAR.replace(
            "return self.out", "attention_bias.add_(1), tokens.add_(1).remainder_(5)\n            return self.out"
        )
        self.assertEqual(self.checked(source.replace("mask", "attention_bias"), heads=2)["wrong"], [])

    def test_check_finds_logits_that_are_not_finite(self):
        told = self.checked(LINEAR.replace("return self.out", "return float('nan') * self.out"))
        self.assertEqual(told["error"], "the logits have numbers that are not finite")

    def test_check_computes_in_the_precision_of_training(self):
        source = LINEAR.replace("return self.out", "assert self.out.weight.dtype == torch.float64\n            return self.out")
        self.assertEqual(self.checked(source, dtype="float64")["wrong"], [])

    def test_check_says_whether_there_are_maps(self):
        (wrong,) = self.checked(LINEAR, maps=True)["wrong"]
        self.assertIn("no method `attention`", wrong)
        method = "        def attention(self):\n            return torch.zeros(3, 4, 2, 6, 6)\n"
        self.assertIn("attention maps of 3 layers with 2 heads", self.checked(LINEAR + method, maps=True)["lines"])

    def test_check_gives_numbers_to_tasks_on_numbers(self):
        source = LINEAR.replace("self.embedding(tokens)", "tokens.unsqueeze(-1) * self.embedding.weight[0]").replace(
            "return", "assert tokens.is_floating_point()\n            return"
        )
        self.assertEqual(self.checked(source, numbers=True, tokens=4, outputs=1, causal=False)["wrong"], [])

    def test_check_finds_text_that_depends_on_later_tokens(self):
        self.assertEqual(self.checked(LINEAR)["wrong"], [])
        (wrong,) = self.checked(LINEAR.replace("self.embedding(tokens)", "self.embedding(tokens.flip(1))"))["wrong"]
        self.assertIn("later tokens", wrong)

    def test_parameters_are_views_of_the_state(self):
        parent = self.parent(LINEAR)
        parent.state[:] = bytes(len(parent.state))
        bias = struct.pack("3f", 1, 2, 3)
        parent.state[4 * (parent.row - 3) : 4 * parent.row] = bias
        self.assertEqual(parent.forward([[1, 2]], outputs=1), (1.0, 2.0, 3.0))

    def test_seed_alone_determines_initial_values(self):
        pack = self.parent(LINEAR, seeds=(3, 9))
        alone = self.parent(LINEAR, seeds=(9,), cold=True)
        self.assertEqual(pack.parameters(1), alone.parameters(0))
        self.assertNotEqual(pack.parameters(0), pack.parameters(1))

    def test_dropout_follows_the_seed_of_the_call(self):
        parent = self.parent(
            LINEAR.replace("self.out(self", "self.out(torch.nn.functional.dropout(self").replace(
                "(tokens))", "(tokens), 0.5, self.training))"
            )
        )
        tokens = [[1, 2, 3, 4]]
        first = parent.forward(tokens, 4, training=True, seed=5)
        other = parent.forward(tokens, 4, training=True, seed=6)
        again = parent.forward(tokens, 4, training=True, seed=5)
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_noise_of_every_generator_follows_the_seed_of_the_call(self):
        for imported, noise in (
            ("random", "random.random()"),
            ("numpy", "float(numpy.random.rand())"),
            ("torch", "torch.rand(())"),
        ):
            if importlib.util.find_spec(imported) is None:
                continue
            with self.subTest(imported):
                source = f"import {imported}\n" + textwrap.dedent(LINEAR).replace("return self", f"return {noise} + self")
                parent = self.parent(source)
                first, other, again = (parent.forward([[1, 2]], 2, seed=seed) for seed in (5, 6, 5))
                self.assertEqual(first, again)
                self.assertNotEqual(first, other)

    def test_buffers_live_in_the_state(self):
        source = LINEAR.replace("self.out =", "self.norm = torch.nn.BatchNorm1d(width)\n            self.out =").replace(
            "self.embedding(tokens))", "self.norm(self.embedding(tokens).transpose(1, 2)).transpose(1, 2))"
        )
        parent = self.parent(source)
        names = [slot["name"] for slot in parent.declared["state"]]
        count = parent.offsets[names.index("norm.num_batches_tracked")]
        parent.forward([[1, 2, 3]], 3, training=True)
        self.assertEqual(parent.parameters()[count], 1.0)
        kept = parent.state[:]
        once = parent.forward([[1, 2, 3]], 3)
        parent.forward([[1, 2, 3]], 3, training=True)
        self.assertNotEqual(parent.forward([[1, 2, 3]], 3), once)
        parent.state[:] = kept
        self.assertEqual(parent.forward([[1, 2, 3]], 3), once)

    def test_tied_weights_have_one_slot(self):
        parent = self.parent(
            """
            import torch
            class Net(torch.nn.Module):
                def __init__(self, vocabulary, outputs):
                    super().__init__()
                    self.embedding = torch.nn.Embedding(vocabulary, 4)
                    self.out = torch.nn.Linear(4, vocabulary, bias=False)
                    self.out.weight = self.embedding.weight
                def forward(self, tokens):
                    return self.out(self.embedding(tokens))[..., :3]
            """
        )
        self.assertEqual(len(parent.declared["state"]), 1)
        parent.forward([[1, 2]], 2, training=True)
        self.assertEqual(parent.ask(do="backward", bias=False, **{"pass": 0}), {})

    def test_sparse_gradients_are_added(self):
        parent = self.parent(LINEAR.replace("(vocabulary, width)", "(vocabulary, width, sparse=True)"))
        for _ in range(2):
            parent.forward([[1, 1]], 2, training=True)
            self.assertEqual(parent.ask(do="backward", bias=False, **{"pass": 0}), {})
        dense = self.parent(LINEAR)
        for _ in range(2):
            dense.forward([[1, 1]], 2, training=True)
            dense.ask(do="backward", bias=False, **{"pass": 0})
        self.assertEqual(parent.gradients(), dense.gradients())

    def test_sequences_may_have_their_own_positions(self):
        parent = self.parent(LINEAR.replace("self.embedding(tokens))", "self.embedding(positions.remainder_(5)))"))
        tokens, places = [[0, 0, 0], [0, 0, 0]], [[2, 3, 4], [0, 1, 7]]
        together = parent.forward(tokens, 3, own=places)
        alone = [parent.forward(tokens[:1], 3, own=[one]) for one in places]
        self.assertLess(furthest(together, alone[0] + alone[1]), 1e-6)
        self.assertNotEqual(*alone)

    def test_check_gives_each_sequence_its_bias(self):
        source = LINEAR.replace("mask", "attention_bias").replace(
            "return self.out", "assert attention_bias.shape == (len(tokens), 2, 6, 6)\n            return self.out"
        )
        self.assertEqual(self.checked(source, heads=2, own_positions=True)["wrong"], [])

    def test_lazy_layers_are_made(self):
        parent = self.parent(LINEAR.replace("torch.nn.Linear(width, outputs)", "torch.nn.LazyLinear(outputs)"))
        self.assertEqual(parent.declared["state"][1]["shape"], [3, 4])

    def test_lazy_buffers_are_made(self):
        norm = "self.norm = torch.nn.LazyBatchNorm1d(affine=False)\n            self.out ="
        parent = self.parent(
            LINEAR.replace("self.out =", norm).replace(
                "self.embedding(tokens))", "self.norm(self.embedding(tokens).transpose(1, 2)).transpose(1, 2))"
            )
        )
        shapes = {slot["name"]: slot["shape"] for slot in parent.declared["state"]}
        self.assertEqual(shapes["norm.running_mean"], [4])

    def test_lazy_layers_without_use_are_refused(self):
        error = self.error(LINEAR.replace("self.out =", "self.more = torch.nn.LazyLinear(3)\n            self.out ="))
        self.assertIn("does not use the lazy layer of `more.weight`", error)

    def test_packages_read_their_data(self):
        parent = self.parent(
            "",
            files={
                "__init__.py": "from .part import Net\n",
                "part.py": textwrap.dedent(LINEAR)
                + "\nimport os\nWIDTH = int(open(os.path.join(os.path.dirname(__file__), 'width.txt')).read())\n",
                "width.txt": {"base64": "Nw=="},
            },
        )
        self.assertNotIn("error", parent.declared)

    def test_files_shadow_no_module(self):
        source = "import numpy\n" + textwrap.dedent(LINEAR) + "numpy.zeros(3)\n"
        parent = self.parent(source, files={"numpy.py": "1/0"}, cold=True)
        self.assertNotIn("error", parent.declared)

    def test_copy_of_the_encoder_matches_golden_values(self):
        """Logits and gradients of a reference implementation, from the same parameters, with all of our code between."""
        for name in ("sin_cos", "wrapped_reverse_string_sin_cos", "wrapped_parity_check_sin_cos"):
            with self.subTest(name):
                with open(os.path.join(GOLDEN, f"{name}.json")) as file:
                    golden = json.load(file)
                tokens, targets = golden["input_tokens"], flat(golden["target_tokens"])
                outputs = len(targets) // len(tokens)
                vocabulary, classes = golden["params"][EMBEDDING]["shape"][0], golden["params"]["linear/w"]["shape"][1]
                if golden["task"] is not None:
                    tokens = [row + [vocabulary - 1] * outputs for row in tokens]
                config = golden["config"]
                with open(os.path.join(TESTING, "encoder_copy.py")) as file:
                    source = file.read()
                parent = self.parent(
                    source,
                    arguments={"blocks": config["num_layers"], "d": config["embedding_dim"]},
                    vocabulary=vocabulary,
                    outputs=classes,
                )
                slots = {slot["name"]: at for slot, at in zip(parent.declared["state"], parent.offsets)}
                state, places = memoryview(parent.state).cast("f"), {}
                for reference, values in golden["params"].items():
                    numbers = array.array("f", flat(values["values"]))
                    places[reference] = slice(slots[our_name(reference)], slots[our_name(reference)] + len(numbers))
                    state[places[reference]] = numbers
                self.assertEqual(sum(place.stop - place.start for place in places.values()), parent.row)
                logits = parent.forward(tokens, outputs, training=True)
                self.assertLess(furthest(logits, flat(golden["logits"])), 1e-5)
                rows = [logits[i : i + classes] for i in range(0, len(logits), classes)]
                parent.set_gradient(cross_entropy_gradient(rows, targets))
                self.assertEqual(parent.ask(do="backward", bias=False, **{"pass": 0}), {})
                gradients = parent.gradients()
                for reference, place in places.items():
                    self.assertLess(furthest(gradients[place], flat(golden["grads"][reference])), 1e-5, reference)

    def error(self, source, **kwargs):
        """What the first failing call says."""
        parent = self.parent(source, **kwargs)
        for answer in (parent.declared, getattr(parent, "bound", {})):
            if "error" in answer:
                return answer["error"]
        for call in (lambda: parent.forward([[1, 2]], 1, training=True), lambda: parent.ask(do="backward", bias=False, **{"pass": 0})):
            answer = call()
            if isinstance(answer, dict) and "error" in answer:
                # It goes on.
                self.assertIn(
                    "error",
                    parent.ask(
                        do="build",
                        archive="/none",
                        dtype="float32",
                        heads=0,
                        arguments={},
                        vocabulary=1,
                        outputs=1,
                        seeds=[1],
                        **{"class": "Net"},
                    ),
                )
                return answer["error"]
        return ""

    def test_wrong_files_are_explained(self):
        forward = "return self.out(self.embedding(tokens))"
        for source, expected in (
            ("import torch\nclass Net(:\n", "net.py:2: SyntaxError: "),
            (LINEAR.replace("class Net", "class Nat"), "the file has no class `Net`; it has `Nat`"),
            (
                LINEAR.replace(forward, "return self.embedding(tokens)"),
                "returned logits of shape [1, 2, 4]; expected [1, 2, 3]",
            ),
            (LINEAR.replace(forward, "return self.out(tokens.float())"), "net.py:9: RuntimeError: mat1 and mat2 shapes"),
            (
                LINEAR.replace(forward, "raise SystemExit(3)"),
                "net.py:9: SystemExit: the module ended the program with exit code 3",
            ),
            (LINEAR.replace(forward, "return torch.zeros(1, 2, 3)"), "no trained parameter has an influence"),
            (LINEAR.replace(forward, "return torch.zeros(25 * 10**9)"), "net.py:9: RuntimeError: "),
            (LINEAR.replace("tokens, positions, mask", "tokens, target"), "`forward` asks for `target`"),
            (
                LINEAR.replace("super()", "torch.lobster()"),
                "net.py:5: AttributeError: module 'torch' has no attribute 'lobster'",
            ),
            ("open('/none/words')", "net.py:1: FileNotFoundError: [Errno 2] No such file or directory: '/none/words'; the module"),
            ("import no_such_package", "write `from .name import ...`"),
            ("eval('1 +')", "net.py:1: SyntaxError: "),
            (LINEAR.replace("mask", "attention_bias"), "asks for `attention_bias`; give the network its `heads`"),
            (LINEAR.replace(forward, "return torch.ones(1, 2, 3, dtype=torch.int64)"), "type torch.int64; expected real"),
            (
                LINEAR.replace("self.out =", "self.turn = torch.nn.Parameter(torch.ones(1) * 1j)\n            self.out ="),
                "the parameter `turn` has type torch.complex64; expected real numbers",
            ),
            (
                LINEAR.replace(
                    "self.out =", "self.register_buffer('hash', torch.tensor(2**24 + 1))\n            self.out ="
                ),
                "the buffer `hash` has whole numbers that torch.float32 cannot hold: register it with",
            ),
            (
                LINEAR.replace(
                    "self.out =", "self.register_buffer('pairs', torch.eye(4).to_sparse())\n            self.out ="
                ),
                "the buffer `pairs` is complex or sparse: register it with",
            ),
            (LINEAR.replace(forward, forward + ", None"), "`forward` returned tuple; expected a tensor of logits [1, 2, 3]"),
            (
                LINEAR.replace("self.out =", "torch.nn.ModuleDict({'a.b': self.embedding})\n            self.out ="),
                "net.py:7: KeyError: ",
            ),
            (LINEAR.replace(forward, "return self.forward(tokens, positions, mask)"), "net.py:9: RecursionError: "),
            ("raise ValueError('one\\ntwo')", "net.py:1: ValueError: one\ntwo\n"),
            ("class Odd(Exception):\n    def __str__(self):\n        return 1\nraise Odd", "net.py:4: Odd: no message"),
            (
                LINEAR.replace(
                    "self.out =", "lazy = torch.nn.LazyLinear(1).weight\n            1 / 0\n            self.out ="
                ),
                "net.py:8: ZeroDivisionError: ",
            ),
            (
                LINEAR.replace(
                    "self.out =", "self.optimizer = torch.optim.SGD(self.parameters(), 1)\n            self.out ="
                ),
                "the module has an optimizer, `optimizer`",
            ),
        ):
            with self.subTest(expected):
                self.assertIn(expected, self.error(source))

    def test_seeds_that_change_the_shapes_are_refused(self):
        source = LINEAR.replace("(vocabulary, width)", "(vocabulary + int(torch.randint(1000, ())), width)")
        self.assertNotIn("error", self.parent(source).declared)
        self.assertIn("another seed makes parameters of other names", self.parent(source, seeds=(1, 2)).declared["error"])

    def test_network_in_place_of_its_class_is_refused(self):
        error = self.error("import torch\nnet = torch.nn.Linear(1, 1)\n", name="net")
        self.assertIn("`net` is a network already; name its class", error)

    def test_error_shows_the_tensors_there(self):
        self.assertIn(
            "tensors there: tokens [1, 2]", self.error(LINEAR.replace("return self.out(self.embedding(tokens))", "1 / 0"))
        )

    def test_error_of_any_length_is_shown_in_part(self):
        self.assertLess(len(self.error("raise ValueError('x' * 10**7)")), 3000)

    def test_signal_handler_that_raises_between_calls_ends_the_child(self):
        source = "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: 1 / 0)\n" + textwrap.dedent(LINEAR)
        parent = self.parent(source, cold=True)
        parent.process.send_signal(signal.SIGUSR1)
        self.assertEqual(parent.process.wait(), 1)

    def test_prints_and_forks_answer_nothing(self):
        source = LINEAR.replace(
            "return self", "print('x' * 10**6)\n            import os\n            os.fork()\n            return self"
        )
        parent = self.parent(source, cold=True)
        first = parent.forward([[1, 2]], 1)
        self.assertEqual(parent.forward([[1, 2]], 1), first)

    def test_closed_output_changes_nothing(self):
        for source in ("sys.stdout.close()", "sys.stdout = None"):
            parent = self.parent(f"import sys\n{source}\n" + textwrap.dedent(LINEAR), cold=True)
            self.assertEqual(len(parent.forward([[1, 2]], 1)), 3)

    def test_warm_python_leaves_other_calls_to_python(self):
        for arguments in (["-c", "import sys; print(*sys.argv)", "cpu"], ["-c", "print(7)"], ["-c", "print(8)", *"123456"]):
            said = [subprocess.check_output([python, "-B", *arguments]) for python in (PYTHON, WARM_PYTHON)]
            self.assertEqual(said[0], said[1])

    def test_old_torch_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "torch"))
            with open(os.path.join(folder, "torch", "__init__.py"), "w") as file:
                file.write("__version__ = '1.12.1'\n")
            parent = self.parent(LINEAR, environment={"PYTHONPATH": folder})
            self.assertIn("has PyTorch 1.12.1, expected 1.13 or newer; name another", parent.declared["error"])
            self.assertTrue(parent.declared["is_local"])

    def test_forks_cannot_change_numbers(self):
        source = LINEAR.replace(
            "return self",
            "import os\n"
            "            if (pid := os.fork()) == 0:\n"
            "                self.out.bias.data.fill_(9)\n"
            "                os._exit(0)\n"
            "            os.waitpid(pid, 0)\n"
            "            return self",
        )
        parent = self.parent(source, cold=True)
        before = parent.parameters()
        parent.forward([[1, 2]], 1)
        self.assertEqual(parent.parameters(), before)


if __name__ == "__main__":
    sys.exit(unittest.main())
