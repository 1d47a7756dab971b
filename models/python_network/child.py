"""Computes a user's PyTorch module for a process that owns its numbers: a worker, or `lengthwise check`.

The parent sends requests, JSON on lines of a socket, and this program answers each with a line. Numbers are in two files
in memory: the state, where the module's parameters and their gradients are views, and the inputs and outputs of a call.
The parent gives seeds, so nothing but the state goes from one call to the next. Needs PyTorch 1.13 or newer and no other
package.
"""

import sys

# The working directory, which `-c` puts first, would let the user's files shadow modules.
sys.path = [place for place in sys.path if place]

import base64
import contextlib
import difflib
import importlib.util
import inspect
import json
import linecache
import math
import mmap
import os
import platform
import random
import resource
import socket
import time
import traceback

ENTRY = "lengthwise_network"
SHOWN_TENSORS, SHOWN_FRAMES = 12, 8


class Refused(Exception):
    """The module cannot be used; the message says why."""


class NoTorch(Refused):
    """This Python cannot compute any module."""


def imported_torch():
    advice = "name another Python with --python or $LENGTHWISE_PYTHON_NETWORKS"
    try:
        import torch
    except (ImportError, OSError) as error:
        raise NoTorch(f"{sys.executable} cannot import PyTorch ({error}); install it there, or {advice}") from None
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (1, 13):
        raise NoTorch(f"{sys.executable} has PyTorch {torch.__version__}, expected 1.13 or newer; {advice}")
    return torch


def load(archive, folder):
    """Unpacks the archive into a folder and returns the module of its file or package."""
    with open(archive, encoding="utf-8") as file:
        content = json.load(file)
    for name, text in content["files"].items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(text["base64"]) if isinstance(text, dict) else text.encode())
    entry = os.path.join(folder, content["entry"])
    is_package = os.path.basename(entry) == "__init__.py"
    places = [os.path.dirname(entry)] if is_package else None
    found = importlib.util.spec_from_file_location(ENTRY, entry, submodule_search_locations=places)
    module = importlib.util.module_from_spec(found)
    sys.modules[ENTRY] = module
    found.loader.exec_module(module)
    return module


def with_class(module, name, torch):
    """The class, or function, that makes the network."""
    if callable(getattr(module, name, None)):
        return getattr(module, name)
    names = [
        other
        for other, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, torch.nn.Module) and value.__module__.startswith(ENTRY)
    ]
    near = difflib.get_close_matches(name, names, 1)
    has = f"did you mean `{near[0]}`?" if near else f"it has {', '.join(f'`{n}`' for n in names) or 'none'}"
    raise Refused(f"the file has no class `{name}`; {has}")


def describe(error, folder):
    """The error for people: a first line with the user's file and line, the tensors there, the user's frames."""
    if isinstance(error, Refused):
        return str(error)
    kind = type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{os.path.relpath(error.filename, folder)}:{error.lineno}"
        return f"{place}: {kind}: {error.msg}\n    {(error.text or '').strip()}"
    own = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename.startswith(folder):
            own.append((frame, line))
    said = str(error) or "no message"
    if isinstance(error, SystemExit):
        said = f"the module ended the program with exit code {error.code}"
    if not own:
        return f"{kind}: {said}"
    lines = []
    for frame, line in own[-SHOWN_FRAMES:]:
        name = os.path.relpath(frame.f_code.co_filename, folder)
        lines.append(
            f"  {name}:{line}: in {frame.f_code.co_name}: {linecache.getline(frame.f_code.co_filename, line).strip()}"
        )
    frame, line = own[-1]
    tensors = [(name, value) for name, value in frame.f_locals.items() if isinstance(getattr(value, "shape", None), tuple)]
    shapes = [f"{name} {list(value.shape)}" for name, value in tensors]
    first = f"{os.path.relpath(frame.f_code.co_filename, folder)}:{line}: {kind}: {said.splitlines()[0]}"
    rest = said.splitlines()[1:4]
    if shapes:
        lines.append("  tensors there: " + ", ".join(shapes[:SHOWN_TENSORS]))
    return "\n".join([first, *rest, *lines])


class Network:
    """The modules of a pack's members, which are made from their own seeds."""

    def __init__(self, request, folder):
        self.torch = torch = imported_torch()
        torch.set_num_threads(request["threads"])
        self.dtype = getattr(torch, request["dtype"])
        torch.set_default_dtype(self.dtype)
        self.vocabulary, self.outputs, self.heads = request["vocabulary"], request["outputs"], request["heads"]
        make = with_class(load(request["archive"], folder), request["class"], torch)
        self.modules = [self._make(make, request["arguments"], seed) for seed in request["seeds"]]
        self.given = self._given()
        self.views, self.gradients, self.buffers = [], [], []
        self.state = None
        self.io = (b"", 0)
        self.pending = {}

    def seed(self, seed):
        self.torch.manual_seed(seed)
        random.seed(seed)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(seed)

    def _make(self, make, arguments, seed):
        torch = self.torch
        self.seed(seed)
        module = make(self.vocabulary, self.outputs, **arguments)
        if not isinstance(module, torch.nn.Module):
            raise Refused(f"made {type(module).__name__}, which is no torch.nn.Module")
        if any(isinstance(p, torch.nn.parameter.UninitializedParameter) for p in module.parameters()):
            module.eval()
            tokens = torch.zeros(1, 2, dtype=torch.int64)
            values = {"tokens": tokens, "positions": torch.arange(2).reshape(1, 2), "mask": tokens == 0}
            values["attention_bias"] = torch.zeros(self.heads, 2, 2)
            with torch.no_grad():
                module(*[value for name, value in values.items() if name in inspect.signature(module.forward).parameters])
            for name, parameter in module.named_parameters():
                if isinstance(parameter, torch.nn.parameter.UninitializedParameter):
                    raise Refused(f"`forward` does not use the lazy layer of `{name}`: remove it, or give it its size")
        if any(t.is_floating_point() and t.dtype != self.dtype for t in [*module.parameters(), *module.buffers()]):
            module._apply(lambda t: t.to(self.dtype) if t.is_floating_point() else t)
        for part in module.modules():
            for name, value in vars(part).items():
                if isinstance(value, torch.optim.Optimizer):
                    raise Refused(f"the module has an optimizer, `{name}`: remove it, training.optimizer chooses one")
        if not any(p.requires_grad for p in module.parameters()):
            raise Refused("the module has no parameter to train")
        return module

    def _given(self):
        """The names of what `forward` takes."""
        known = ["tokens", "positions", "mask"] + ["attention_bias"] * (self.heads > 0)
        parameters = inspect.signature(self.modules[0].forward).parameters.values()
        if any(p.kind is p.VAR_KEYWORD for p in parameters):
            return known
        for parameter in parameters:
            if (
                parameter.name not in known
                and parameter.default is parameter.empty
                and parameter.kind is not parameter.VAR_POSITIONAL
            ):
                raise Refused(f"`forward` asks for `{parameter.name}`; it may take {', '.join(f'`{n}`' for n in known)}")
        return [p.name for p in parameters if p.name in known]

    def declare(self):
        """Names, shapes and kinds of the parameters, then of the buffers that `state_dict` has."""
        module = self.modules[0]
        saved = module.state_dict()
        for name, value in saved.items():
            if not isinstance(value, self.torch.Tensor):
                raise Refused(f"`{name}` of the module's state is no tensor, so no checkpoint can hold it")
        declared = []
        for name, parameter in module.named_parameters():
            if not parameter.is_floating_point():
                raise Refused(f"the parameter `{name}` has type {parameter.dtype}; expected real numbers")
            declared.append({"name": name, "shape": list(parameter.shape), "trained": parameter.requires_grad})
        for name, buffer in module.named_buffers():
            if name not in saved:
                continue
            if buffer.is_complex():
                raise Refused(f"the buffer `{name}` is complex: register it with persistent=False, if it is constant")
            declared.append({"name": name, "shape": list(buffer.shape), "trained": False})
        return {"state": declared, "torch": self.torch.__version__, "python": platform.python_version()}

    def _mapped(self, file, size):
        if not size:
            return b""
        memory = mmap.mmap(file, size)
        # A copy that the module forks must not change numbers, either.
        memory.madvise(mmap.MADV_DONTFORK)
        return memory

    def bind(self, request, file):
        """Makes the parameters views of the state's file, and writes their initial values into it."""
        torch = self.torch
        self.state = torch.frombuffer(self._mapped(file, request["bytes"]), dtype=self.dtype)
        for member, module in enumerate(self.modules):
            views, gradients, buffers = {}, {}, {}
            offsets = iter(request["offsets"])
            row = member * request["row"]
            for name, parameter in module.named_parameters():
                offset = row + next(offsets)
                views[name] = self._view(request["parameters"] + offset, parameter)
                views[name].copy_(parameter.data)
                parameter.data = views[name]
                if parameter.requires_grad:
                    gradients[name] = self._view(request["gradients"] + offset, parameter)
                    parameter.grad = gradients[name]
            saved = module.state_dict()
            for name, buffer in module.named_buffers():
                if name in saved:
                    buffers[name] = self._view(request["parameters"] + row + next(offsets), buffer)
            self.views.append(views)
            self.gradients.append(gradients)
            self.buffers.append(buffers)
            self._keep_buffers(member)
        return {}

    def _view(self, offset, like):
        return self.state[offset : offset + like.numel()].view(like.shape)

    def _keep_buffers(self, member):
        """Writes the buffers into the state."""
        if not self.buffers[member]:
            return
        present = dict(self.modules[member].named_buffers())
        for name, view in self.buffers[member].items():
            if name not in present or present[name].shape != view.shape:
                raise Refused(f"the buffer `{name}` has gone or changed its shape in training")
            view.copy_(present[name])
            if not present[name].is_floating_point() and not self.torch.equal(view.to(present[name].dtype), present[name]):
                raise Refused(f"the buffer `{name}` has whole numbers that {self.dtype} cannot hold")

    def forward(self, request, file):
        torch = self.torch
        member, rows, n, m = request["member"], request["rows"], request["tokens"], request["outputs"]
        module = self.modules[member]
        if request["pass"] == 0:
            self.pending = {}
        if len(self.io[0]) < request["bytes"]:
            self.io = (self._mapped(file, request["bytes"]), 0)
        if module.training != request["training"]:
            module.train(request["training"])
        with torch.no_grad():
            present = dict(module.named_buffers()) if self.buffers[member] else {}
            for name, view in self.buffers[member].items():
                present[name].copy_(view)
        memory = self.io[0]
        read_type = self.dtype if request["numbers"] else torch.int64
        values = {
            "tokens": torch.frombuffer(memory, dtype=read_type, count=rows * n, offset=request["at"]["tokens"]).view(
                rows, n
            ),
            "positions": torch.frombuffer(memory, dtype=torch.int64, count=n, offset=request["at"]["positions"]).repeat(
                rows, 1
            ),
            "mask": torch.ones(rows, n, dtype=torch.bool),
        }
        bias = None
        if self.heads:
            bias = self._square(memory, n, request["at"]["bias"]).clone().requires_grad_(request["training"])
            values["attention_bias"] = bias
        self.seed(request["seed"])
        with torch.set_grad_enabled(request["training"]):
            logits = module(**{name: values[name] for name in self.given})
        expected = [rows, n, self.outputs]
        if not isinstance(logits, torch.Tensor):
            raise Refused(f"`forward` returned {type(logits).__name__}; expected a tensor of logits {expected}")
        if list(logits.shape) != expected:
            raise Refused(
                f"`forward` returned logits of shape {list(logits.shape)}; expected {expected}: "
                "batch, tokens (input and outputs), classes"
            )
        read = logits[:, n - m :]
        values = self._out(memory, request, "logits")
        values.copy_(read.detach())
        if request["training"]:
            if not read.requires_grad:
                raise Refused("no trained parameter has an influence on the logits")
            with torch.no_grad():
                self._keep_buffers(member)
            of_bias = self._square(memory, n, request["at"]["bias_gradient"]) if self.heads else None
            self.pending[request["pass"]] = (member, read, self._out(memory, request, "gradient"), bias, of_bias)
        return {}

    def _square(self, memory, n, offset):
        """A number for each head and pair of tokens."""
        count = self.heads * n * n
        return self.torch.frombuffer(memory, dtype=self.dtype, count=count, offset=offset).view(self.heads, n, n)

    def _out(self, memory, request, name):
        shape = (request["rows"], request["outputs"], self.outputs)
        count = shape[0] * shape[1] * shape[2]
        return self.torch.frombuffer(memory, dtype=self.dtype, count=count, offset=request["at"][name]).view(shape)

    def backward(self, number=0, wants_bias=False):
        """Adds the gradients of a forward pass to the state's."""
        member, read, gradient, bias, of_bias = self.pending.pop(number)
        read.backward(gradient.to(read.dtype))
        if wants_bias:
            if bias.grad is None:
                raise Refused("`attention_bias` has no influence on the logits")
            of_bias.copy_(bias.grad)
        views = self.views[member]
        for name, parameter in self.modules[member].named_parameters():
            if parameter.data_ptr() != views[name].data_ptr():
                raise Refused(f"`forward` gave the parameter `{name}` new memory; change its values in place")
            kept = self.gradients[member].get(name)
            if kept is not None and parameter.grad is not kept:
                # Sparse gradients are not added in place.
                if parameter.grad is not None:
                    kept.copy_(parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad)
                parameter.grad = kept
        return {}


class Alone:
    """One module with a state of its own, as a worker would keep it."""

    def __init__(self, request, folder):
        self.network = Network({**request, "seeds": [1]}, folder)
        self.heads = request["heads"]
        self.slots = self.network.declare()["state"]
        self.row = sum(math.prod(slot["shape"]) for slot in self.slots)
        offsets = [sum(math.prod(slot["shape"]) for slot in self.slots[:i]) for i in range(len(self.slots))]
        self.files = [os.memfd_create("state"), os.memfd_create("inputs")]
        os.ftruncate(self.files[0], 8 * self.row)
        bind = {"bytes": 8 * self.row, "row": self.row, "offsets": offsets, "parameters": 0, "gradients": self.row}
        self.network.bind(bind, self.files[0])

    def logits(self, tokens, outputs, seed, training):
        """The logits that the service reads; a training pass also replaces the gradients by those of their sum."""
        torch, (rows, n) = self.network.torch, tokens.shape
        count = rows * outputs * self.network.outputs
        at = {"tokens": 0, "positions": 8 * rows * n, "logits": 8 * (rows + 1) * n}
        at["gradient"] = at["logits"] + 4 * count
        at["bias"] = at["gradient"] + 4 * count
        at["bias_gradient"] = at["bias"] + 4 * self.heads * n * n
        size = at["bias_gradient"] + 4 * self.heads * n * n
        if os.fstat(self.files[1]).st_size < size:
            os.ftruncate(self.files[1], size)
        memory = mmap.mmap(self.files[1], size)
        torch.frombuffer(memory, dtype=torch.int64, count=rows * n).copy_(tokens.flatten())
        torch.frombuffer(memory, dtype=torch.int64, count=n, offset=at["positions"]).copy_(torch.arange(n))
        memory[at["bias"] :] = bytes(size - at["bias"])
        request = {
            "member": 0,
            "seed": seed,
            "training": training,
            "numbers": False,
            "pass": 0,
            "rows": rows,
            "tokens": n,
            "outputs": outputs,
        }
        self.network.forward({**request, "at": at, "bytes": size}, self.files[1])
        if training:
            torch.frombuffer(memory, dtype=torch.float32, count=count, offset=at["gradient"]).fill_(1 / count)
            self.network.state[self.row :] = 0
            self.network.backward()
        return torch.frombuffer(memory, dtype=torch.float32, count=count, offset=at["logits"]).clone()


def check(request, folder):
    """What people should know of the module before it trains, and whether anything is wrong."""
    first = Alone(request, folder)
    torch, lines, wrong = first.network.torch, [], []
    rows, inputs, outputs = request["rows"], request["tokens"], request["outputs_read"]
    torch.manual_seed(0)
    tokens = torch.randint(request["vocabulary"], (rows, inputs + outputs))
    trained = [slot for slot in first.slots if slot["trained"]]
    lines.append(f"{sum(math.prod(s['shape']) for s in trained):,} trained numbers in {len(trained)} parameters")
    lines.append(f"{len(first.slots) - len(trained)} buffers and fixed parameters; torch {torch.__version__}")
    again = Alone(request, folder)
    first.logits(tokens, outputs, 1, training=True)
    lines.append(f"logits have the shape {[rows, inputs + outputs, request['outputs']]}")
    unreached = [name for name, gradient in first.network.gradients[0].items() if not torch.count_nonzero(gradient)]
    if unreached:
        wrong.append(f"no gradient reaches {', '.join(unreached[:SHOWN_TENSORS])}")
    kept = first.network.state.clone()
    here = first.logits(tokens, outputs, 2, training=True)
    again.network.state.copy_(kept)
    resumed = again.logits(tokens, outputs, 2, training=True)
    if torch.equal(here, resumed) and torch.equal(first.network.state, again.network.state):
        lines.append("a resumed step equals one that was not interrupted")
    else:
        wrong.append("a resumed step differs: the module keeps state outside of its parameters and buffers")
    whole = first.logits(tokens, outputs, 3, training=False).view(rows, -1)
    single = first.logits(tokens[:1], outputs, 3, training=False)
    if not torch.allclose(whole[0], single, rtol=1e-3, atol=1e-4):
        wrong.append("the logits of a sequence depend on the others of its batch, also in evaluations")
    if request["causal"]:
        changed = tokens.clone()
        changed[:, -1] = (changed[:, -1] + 1) % request["vocabulary"]
        later = first.logits(changed, outputs, 3, training=False).view(rows, outputs, -1)
        if not torch.allclose(whole.view(later.shape)[:, :-1], later[:, :-1], rtol=1e-3, atol=1e-4):
            wrong.append("the logits of a token depend on later tokens, which no text has yet when it is continued")
    start, steps = time.monotonic(), 0
    while steps < 3 or time.monotonic() < start + 1:
        first.logits(tokens, outputs, steps, training=True)
        steps += 1
    lines.append(f"{steps / (time.monotonic() - start):.1f} steps a second, without the optimizer's")
    return {"lines": lines, "wrong": wrong}


def serve(control, files, folder):
    network = None
    stream = control.makefile("rb")
    for line in stream:
        request = json.loads(line)
        try:
            if request["do"] == "build":
                network = Network(request, folder)
                answer = network.declare()
            elif request["do"] == "check":
                answer = check(request, folder)
            elif request["do"] == "bind":
                answer = network.bind(request, files[0])
            elif request["do"] == "forward":
                answer = network.forward(request, files[1])
            else:
                answer = network.backward(request["pass"], request["bias"])
        # SystemExit and KeyboardInterrupt too: the module must not end this program.
        except BaseException as error:  # noqa: BLE001
            answer = {"error": describe(error, folder), "is_missing_torch": isinstance(error, NoTorch)}
        sys.stdout.flush()
        control.sendall(json.dumps(answer).encode() + b"\n")


def limit(most_bytes):
    """Bounds the memory, and lets the kernel end this program before its parent."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most_bytes = most_bytes if hard == resource.RLIM_INFINITY else min(most_bytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def main():
    control = socket.socket(fileno=int(sys.argv[1]))
    files = [int(sys.argv[2]), int(sys.argv[3])]
    for file in (control.fileno(), *files):
        os.set_inheritable(file, False)
    folder = os.path.realpath(sys.argv[4])
    limit(int(sys.argv[5]))
    # A copy that the module forks must not answer.
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.register_at_fork(after_in_child=lambda: os.dup2(nowhere, control.fileno()))
    try:
        serve(control, files, folder)
    finally:
        # Threads of the module would keep the program alive.
        os._exit(0)


if __name__ == "__main__":
    main()
