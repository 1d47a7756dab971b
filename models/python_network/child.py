"""Computes a user's PyTorch module for a process that owns its numbers: a worker, or `lengthwise check`.

The parent sends requests, JSON on lines of a socket, and this program answers each with a line. Numbers are in two files
in memory: the state, where the module's parameters and their gradients are views, and the inputs and outputs of a call.
The parent gives seeds, so nothing but the state goes from one call to the next, except for the cache of texts that are
being continued. Needs PyTorch 1.13 or newer and no other package.
"""

import sys

# The working directory, which `-c` puts first, would let the user's files shadow modules.
sys.path = [place for place in sys.path if place]

import base64
import contextlib
import difflib
import importlib.machinery
import importlib.util
import inspect
import itertools
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
SHOWN_TENSORS, SHOWN_FRAMES, SHOWN_LINES = 12, 8, 4
# What to do about errors whose own text does not say it.
ADVICE = {
    FileNotFoundError: "the module has no files but those of `file`: name a folder with __init__.py to add some",
    ModuleNotFoundError: f"install it for {sys.executable}; to import your own file, name its folder as `file` and "
    "write `from .name import ...`",
}


class Refused(Exception):
    """The module cannot be used; the message says why."""


class NotHere(Refused):
    """Another machine may be able to compute the module."""


def imported_torch():
    advice = "name another Python with --python or $LENGTHWISE_PYTHON_NETWORKS"
    try:
        import torch
    except (ImportError, OSError) as error:
        raise NotHere(f"{sys.executable} cannot import PyTorch ({error}); install it there, or {advice}") from None
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (1, 13):
        raise NotHere(f"{sys.executable} has PyTorch {torch.__version__}, expected 1.13 or newer; {advice}")
    return torch


def load(archive, folder):
    """Unpacks the archive into a folder and returns the module of its file or package."""
    with open(archive, encoding="utf-8") as file:
        content = json.load(file)
    try:
        for name, text in content["files"].items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(base64.b64decode(text["base64"]) if isinstance(text, dict) else text.encode())
    except OSError as error:
        raise NotHere(f"cannot unpack the network's files in {folder}: {error.strerror}") from None
    entry = os.path.join(folder, content["entry"])
    found = importlib.util.spec_from_file_location(
        ENTRY,
        entry,
        loader=importlib.machinery.SourceFileLoader(ENTRY, entry),
        submodule_search_locations=[os.path.dirname(entry)] if os.path.basename(entry) == "__init__.py" else None,
    )
    module = importlib.util.module_from_spec(found)
    sys.modules[ENTRY] = module
    found.loader.exec_module(module)
    return module


def with_class(module, name, torch):
    """The class, or function, that makes the network."""
    make = getattr(module, name, None)
    if isinstance(make, torch.nn.Module):
        raise Refused(f"`{name}` is a network already; name its class, or a function that makes one")
    if callable(make):
        return make
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
    if isinstance(error, SyntaxError) and (error.filename or "").startswith(folder):
        place = f"{os.path.relpath(error.filename, folder)}:{error.lineno}"
        return f"{place}: {kind}: {error.msg}\n    {(error.text or '').strip()}"
    said = (str(error) or "no message").splitlines()[:SHOWN_LINES]
    if isinstance(error, SystemExit):
        said = [f"the module ended the program with exit code {error.code}"]
    if type(error) in ADVICE:
        said[0] += f"; {ADVICE[type(error)]}"
    own = [(f, line) for f, line in traceback.walk_tb(error.__traceback__) if f.f_code.co_filename.startswith(folder)]
    lines, place = [], ""
    for frame, line in own[-SHOWN_FRAMES:]:
        file = frame.f_code.co_filename
        place = f"{os.path.relpath(file, folder)}:{line}: "
        lines.append(f"  {place}in {frame.f_code.co_name}: {linecache.getline(file, line).strip()}")
    values = own[-1][0].f_locals.items() if own else ()
    shapes = [f"{name} {list(value.shape)}" for name, value in values if isinstance(getattr(value, "shape", None), tuple)]
    if shapes:
        lines.append("  tensors there: " + ", ".join(shapes[:SHOWN_TENSORS]))
    return "\n".join([f"{place}{kind}: {said[0]}", *said[1:], *lines])


class Network:
    """The modules of a pack's members, which are made from their own seeds."""

    def __init__(self, request, folder):
        self.torch = torch = imported_torch()
        torch.set_num_threads(request["threads"])
        self.dtype = getattr(torch, request["dtype"])
        torch.set_default_dtype(self.dtype)
        self.token_type = self.dtype if request.get("numbers") else torch.int64
        self.vocabulary, self.outputs, self.heads = request["vocabulary"], request["outputs"], request["heads"]
        make = with_class(load(request["archive"], folder), request["class"], torch)
        self.modules = [self._make(make, request["arguments"], seed) for seed in request["seeds"]]
        self.views, self.gradients, self.buffers = [], [], []
        self.state = None
        self.io = b""
        self.pending = {}
        self.cache = self.maps = None
        self.shape = (0, 0)

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
        self.given = self._given(module)
        lazy = torch.nn.parameter.UninitializedParameter
        if any(isinstance(p, lazy) for p in module.parameters()):
            module.eval()
            with torch.no_grad():
                tokens = torch.zeros(1, 2, dtype=self.token_type)
                self._call(module, tokens, torch.arange(2).reshape(1, 2), torch.zeros(self.heads, 2, 2), None)
            for name, parameter in module.named_parameters():
                if isinstance(parameter, lazy):
                    raise Refused(f"`forward` does not use the lazy layer of `{name}`: remove it, or give it its size")
        if any(t.is_floating_point() and t.dtype != self.dtype for t in [*module.parameters(), *module.buffers()]):
            module._apply(lambda t: t.to(self.dtype) if t.is_floating_point() else t)
        for part in module.modules():
            for name, value in vars(part).items():
                if isinstance(value, torch.optim.Optimizer):
                    raise Refused(f"the module has an optimizer, `{name}`: remove it, training.optimizer chooses one")
        if not any(p.requires_grad and p.numel() for p in module.parameters()):
            raise Refused("the module has no parameter to train")
        return module

    def _given(self, module):
        """The names of what `forward` takes."""
        known = ["tokens", "positions", "mask", "cache"] + ["attention_bias"] * (self.heads > 0)
        parameters = inspect.signature(module.forward).parameters.values()
        names = {p.name for p in parameters}
        for p in parameters:
            if p.kind is p.VAR_KEYWORD:
                # A module that does not name the cache would not keep one.
                names.update(known[:3] + known[4:])
            elif p.name not in known and p.default is p.empty and p.kind is not p.VAR_POSITIONAL:
                may = f"it may take {', '.join(f'`{n}`' for n in known)}"
                advice = "give the network its `heads`" if p.name == "attention_bias" else may
                raise Refused(f"`forward` asks for `{p.name}`; {advice}")
        return [name for name in known if name in names]

    def _call(self, module, tokens, positions, bias, cache):
        mask = self.torch.ones(tokens.shape, dtype=self.torch.bool)
        values = {"tokens": tokens, "positions": positions, "mask": mask, "attention_bias": bias, "cache": cache}
        return module(**{name: values[name] for name in self.given})

    def _slots(self, module):
        """What the state holds: the parameters, then the buffers that `state_dict` has."""
        saved = module.state_dict()
        for name, value in saved.items():
            if not isinstance(value, self.torch.Tensor):
                raise Refused(f"`{name}` of the module's state is no tensor, so no checkpoint can hold it")
        for name, value in module.named_parameters():
            if not value.is_floating_point():
                raise Refused(f"the parameter `{name}` has type {value.dtype}; expected real numbers")
            yield name, value
        for name, value in module.named_buffers():
            if value.is_complex() and name in saved:
                raise Refused(f"the buffer `{name}` is complex: register it with persistent=False, if it is constant")
            if name in saved:
                yield name, value

    def declare(self):
        module = self.modules[0]
        trained = {name for name, parameter in module.named_parameters() if parameter.requires_grad}
        return {
            "state": [{"name": n, "shape": list(v.shape), "trained": n in trained} for n, v in self._slots(module)],
            # A layer of this name gives no maps.
            "attention": inspect.isroutine(getattr(type(module), "attention", None)),
            "cache": "cache" in self.given,
            "torch": self.torch.__version__,
            "python": platform.python_version(),
        }

    def _mapped(self, file, size):
        if not size:
            return b""
        memory = mmap.mmap(file, size)
        # A copy that the module forks must not change numbers, either.
        memory.madvise(mmap.MADV_DONTFORK)
        return memory

    def bind(self, request, files):
        """Makes the parameters views of the state's file, and writes their initial values into it."""
        torch = self.torch
        self.state = torch.frombuffer(self._mapped(files[0], request["bytes"]), dtype=self.dtype)
        for member, module in enumerate(self.modules):
            views, gradients, buffers = {}, {}, {}
            for (name, value), offset in zip(self._slots(module), request["offsets"]):
                offset += member * request["row"]
                view = self._view(request["parameters"] + offset, value)
                if not isinstance(value, torch.nn.Parameter):
                    buffers[name] = view
                    continue
                view.copy_(value.data)
                views[name] = value.data = view
                if value.requires_grad:
                    value.grad = gradients[name] = self._view(request["gradients"] + offset, value)
            self.views.append(views)
            self.gradients.append(gradients)
            self.buffers.append(buffers)
            self._keep_buffers(member)
        return {}

    def _view(self, offset, like):
        return self.state[offset : offset + like.numel()].view(like.shape)

    def _keep_buffers(self, member):
        """Writes the buffers into the state."""
        present = dict(self.modules[member].named_buffers()) if self.buffers[member] else {}
        for name, view in self.buffers[member].items():
            if name not in present or present[name].shape != view.shape:
                raise Refused(f"the buffer `{name}` has gone or changed its shape in training")
            view.copy_(present[name])
            if not present[name].is_floating_point() and not self.torch.equal(view.to(present[name].dtype), present[name]):
                raise Refused(
                    f"the buffer `{name}` has whole numbers that {self.dtype} cannot hold: register it with "
                    "persistent=False, if it is constant"
                )

    def _numbers(self, place, *shape, dtype=None):
        """A view of the inputs' file."""
        count = math.prod(shape)
        if not count:
            return self.torch.empty(shape)
        return self.torch.frombuffer(self.io, dtype=dtype or self.dtype, count=count, offset=place).view(shape)

    def forward(self, request, files):
        torch = self.torch
        member, rows, n, m, at = (request[name] for name in ("member", "rows", "tokens", "outputs", "at"))
        module, training, cached = self.modules[member], request["training"], request.get("cached", -1)
        if request["pass"] == 0:
            self.pending = {}
        if len(self.io) < request["bytes"]:
            self.io = self._mapped(files[1], request["bytes"])
        if module.training != training:
            module.train(training)
        with torch.no_grad():
            present = dict(module.named_buffers()) if self.buffers[member] else {}
            for name, view in self.buffers[member].items():
                present[name].copy_(view)
        tokens = self._numbers(at["tokens"], rows, n, dtype=self.token_type)
        place_type = torch.float64 if request.get("real_positions") else torch.int64
        positions = self._numbers(at["positions"], 1, n, dtype=place_type).repeat(rows, 1)
        square = (self.heads, n, n + max(0, cached))
        bias = self._numbers(at["bias"], *square).clone().requires_grad_(training) if self.heads else None
        if cached == 0:
            self.cache = {}
        self.seed(request["seed"])
        with torch.set_grad_enabled(training):
            logits = self._call(module, tokens, positions, bias, self.cache if cached >= 0 else None)
        self.shape = (rows, n)
        expected = [rows, n, self.outputs]
        if not isinstance(logits, torch.Tensor):
            raise Refused(f"`forward` returned {type(logits).__name__}; expected a tensor of logits {expected}")
        if list(logits.shape) != expected:
            raise Refused(
                f"`forward` returned logits of shape {list(logits.shape)}; expected {expected}: "
                "batch, tokens (input and outputs), classes"
            )
        if not logits.is_floating_point():
            raise Refused(f"`forward` returned logits of type {logits.dtype}; expected real numbers")
        read = logits[:, n - m :]
        self._numbers(at["logits"], *read.shape).copy_(read.detach())
        if training:
            if not read.requires_grad:
                raise Refused("no trained parameter has an influence on the logits")
            with torch.no_grad():
                self._keep_buffers(member)
            of_bias = self._numbers(at["bias_gradient"], *square) if self.heads else None
            self.pending[request["pass"]] = (member, read, self._numbers(at["gradient"], *read.shape), bias, of_bias)
        return {}

    def attention(self, request, files):
        """Attention of the last forward pass, [layers, batch, heads, n, n]: the shape, and in a second call the numbers."""
        if "at" not in request:
            maps = list(self.modules[request["member"]].attention())
            shapes = [list(getattr(one, "shape", [])) for one in maps]
            rows, n = self.shape
            if not maps or any(len(s) != 4 or s != [rows, shapes[0][1], n, n] for s in shapes):
                raise Refused(
                    f"`attention` returned {shapes or 'nothing'}; expected a tensor of the shape [{rows}, heads, {n}, {n}] "
                    "for each layer: batch, heads, queries, keys"
                )
            self.maps = self.torch.stack([one.detach() for one in maps])
            return {"shape": list(self.maps.shape)}
        if len(self.io) < request["bytes"]:
            self.io = self._mapped(files[1], request["bytes"])
        self._numbers(request["at"], *self.maps.shape).copy_(self.maps)
        return {}

    def backward(self, request, _files):
        """Adds the gradients of a forward pass to the state's."""
        member, read, gradient, bias, of_bias = self.pending.pop(request["pass"])
        read.backward(gradient.to(read.dtype))
        if request["bias"]:
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
        self.declared = self.network.declare()
        self.slots = self.declared["state"]
        *offsets, self.row = itertools.accumulate((math.prod(slot["shape"]) for slot in self.slots), initial=0)
        self.files = [os.memfd_create("state"), os.memfd_create("inputs")]
        os.ftruncate(self.files[0], 8 * self.row)
        bind = {"bytes": 8 * self.row, "row": self.row, "offsets": offsets, "parameters": 0, "gradients": self.row}
        self.network.bind(bind, self.files)

    def logits(self, tokens, outputs, seed, training, cached=-1):
        """The logits that the service reads; a training pass also replaces the gradients by those of their mean."""
        torch, (rows, n), before = self.network.torch, tokens.shape, max(0, cached)
        logits, square = 4 * rows * outputs * self.network.outputs, 4 * self.network.heads * n * (before + n)
        names = ("tokens", "positions", "bias", "bias_gradient", "logits", "gradient")
        *starts, size = itertools.accumulate((8 * rows * n, 8 * n, square, square, logits, logits), initial=0)
        at = dict(zip(names, starts))
        os.ftruncate(self.files[1], max(size, os.fstat(self.files[1]).st_size))
        memory = mmap.mmap(self.files[1], size)
        torch.frombuffer(memory, dtype=tokens.dtype, count=rows * n).copy_(tokens.flatten())
        torch.frombuffer(memory, dtype=torch.int64, count=n, offset=at["positions"]).copy_(torch.arange(before, before + n))
        memory[at["bias"] :] = bytes(size - at["bias"])
        request = {"member": 0, "seed": seed, "training": training, "pass": 0, "cached": cached, "at": at, "bytes": size}
        self.network.forward({**request, "rows": rows, "tokens": n, "outputs": outputs}, self.files)
        read = torch.frombuffer(memory, dtype=torch.float32, count=logits // 4, offset=at["logits"])
        if training:
            torch.frombuffer(memory, dtype=torch.float32, count=logits // 4, offset=at["gradient"]).fill_(4 / logits)
            self.network.state[self.row :] = 0
            self.network.backward({"pass": 0, "bias": False}, self.files)
        return read.view(rows, outputs, -1).clone()


def check(request, folder):
    """What people should know of the module before it trains, and whether anything is wrong."""
    first = Alone(request, folder)
    torch, lines, wrong = first.network.torch, [], []
    rows, inputs, outputs = request["rows"], request["tokens"], request["outputs_read"]
    torch.manual_seed(0)
    if request.get("numbers"):
        tokens = torch.randn(rows, inputs + outputs)
    else:
        tokens = torch.randint(request["vocabulary"], (rows, inputs + outputs))

    def close(some, other):
        return torch.allclose(some, other, rtol=1e-3, atol=1e-4)

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
    whole = first.logits(tokens, outputs, 3, training=False)
    if first.declared["attention"]:
        layers, _, heads, _, _ = first.network.attention({"member": 0}, first.files)["shape"]
        lines.append(f"attention maps of {layers} layers with {heads} heads")
    elif request.get("maps"):
        wrong.append("evaluation.attention_lengths asks for maps, and the network has no method `attention`")
    if not close(whole[0], first.logits(tokens[:1], outputs, 3, training=False)[0]):
        wrong.append("the logits of a sequence depend on the others of its batch, also in evaluations")
    if request["causal"]:
        changed = tokens.clone()
        changed[:, -1] = (changed[:, -1] + 1) % request["vocabulary"]
        if not close(whole[:, :-1], first.logits(changed, outputs, 3, training=False)[:, :-1]):
            wrong.append("the logits of a token depend on later tokens, which no text has yet when it is continued")
        if first.declared["cache"]:
            parts = [tokens[:, :2], *tokens[:, 2:].split(1, dim=1)]
            starts = [0, *range(2, tokens.shape[1])]
            read = [first.logits(part, part.shape[1], 3, False, cached=start) for part, start in zip(parts, starts)]
            if close(torch.cat(read, 1)[:, -outputs:], whole):
                lines.append("logits with `cache` equal those without")
            else:
                wrong.append("logits with `cache` differ from those of the whole text at once")
    start, steps = time.monotonic(), 0
    while steps < 3 or time.monotonic() < start + 1:
        first.logits(tokens, outputs, steps, training=True)
        steps += 1
    lines.append(f"{steps / (time.monotonic() - start):.1f} steps a second, without the optimizer's")
    return {"lines": lines, "wrong": wrong}


def serve(control, files, folder):
    network = None
    for line in control.makefile("rb"):
        request = json.loads(line)
        try:
            if request["do"] == "build":
                network = Network(request, folder)
                answer = network.declare()
            elif request["do"] == "check":
                answer = check(request, folder)
            else:
                answer = getattr(network, request["do"])(request, files)
        # SystemExit and KeyboardInterrupt too: the module must not end this program.
        except BaseException as error:  # noqa: BLE001
            answer = {"error": describe(error, folder), "is_local": isinstance(error, NotHere)}
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
    control_file, *files, folder, most_bytes = sys.argv[1:]
    # A module that parses the command line finds no arguments.
    sys.argv = [ENTRY]
    files = [int(file) for file in files]
    control = socket.socket(fileno=int(control_file))
    for file in (control.fileno(), *files):
        os.set_inheritable(file, False)
    limit(int(most_bytes))
    # A copy that the module forks must not answer.
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.register_at_fork(after_in_child=lambda: os.dup2(nowhere, control.fileno()))
    try:
        serve(control, files, os.path.realpath(folder))
    finally:
        # Threads of the module would keep the program alive.
        os._exit(0)


if __name__ == "__main__":
    main()
