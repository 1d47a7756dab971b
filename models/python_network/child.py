"""Computes a user's PyTorch module for a process that owns its numbers: a worker, or `lengthwise check`.

The parent sends requests, JSON on lines of a socket, and this program answers each with a line. Numbers are in two files
in memory: the state, where the module's parameters and their gradients are views, and the inputs and outputs of a call.
On another device than the CPU they are views of a copy of the state; each call copies what it needs there and back.
The parent gives seeds, so nothing but the state goes from one call to the next, except for the cache of texts that are
being continued. Needs PyTorch 1.13 or newer and no other package.
"""

import sys

# The working directory, which `-c` puts first, would let the user's files shadow modules.
sys.path = [place for place in sys.path if place]

import base64
import contextlib
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
import signal
import socket
import time
import traceback

ENTRY = "lengthwise_network"
SHOWN_TENSORS, SHOWN_FRAMES, SHOWN_LINES, SHOWN_CHARACTERS = 12, 8, 4, 2000
NOT_KEPT = "register it with persistent=False, if it is constant"
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


def opened(torch, name):
    """The device of this name. One that is no CPU computes as exactly as PyTorch lets it."""
    try:
        is_cpu = torch.zeros(1, device=name).device.type == "cpu"
    except (AssertionError, RuntimeError) as error:
        why = f"PyTorch of {sys.executable} cannot compute on {name}: {str(error).splitlines()[0]}"
        raise NotHere(f"{why}; name another device with --python_device or $LENGTHWISE_PYTHON_DEVICE") from None
    if not is_cpu:
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.backends.cudnn.allow_tf32 = False
    return torch.device(name)


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
    folders = [os.path.dirname(entry)] if os.path.basename(entry) == "__init__.py" else None
    loader = importlib.machinery.SourceFileLoader(ENTRY, entry)
    found = importlib.util.spec_from_file_location(ENTRY, entry, loader=loader, submodule_search_locations=folders)
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
    classes = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, torch.nn.Module)]
    names = ", ".join(f"`{one.__name__}`" for one in classes if one.__module__.startswith(ENTRY))
    raise Refused(f"the file has no class `{name}`; it has {names or 'none'}")


def told_by(value, ask):
    """What a value of the module tells of itself; None if that fails."""
    with contextlib.suppress(Exception):
        return ask(value)


def describe(error, folder):
    """The error for people: a first line with the user's file and line, the tensors there, the user's frames."""
    if isinstance(error, Refused):
        return str(error)
    kind = type(error).__name__
    if isinstance(error, SyntaxError) and (error.filename or "").startswith(folder):
        place = f"{os.path.relpath(error.filename, folder)}:{error.lineno}"
        return f"{place}: {kind}: {error.msg}\n    {(error.text or '').strip()}"
    said = (told_by(error, str) or "no message")[:SHOWN_CHARACTERS].splitlines()[:SHOWN_LINES]
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
    values = own[-1][0].f_locals if own else {}
    shapes = {name: told_by(value, lambda tensor: tensor.shape) for name, value in values.items()}
    shapes = [f"{name} {list(shape)}" for name, shape in shapes.items() if isinstance(shape, tuple)]
    if shapes:
        lines.append("  tensors there: " + ", ".join(shapes[:SHOWN_TENSORS]))
    return "\n".join([f"{place}{kind}: {said[0]}", *said[1:], *lines])


def mapped(file):
    memory = mmap.mmap(file, os.fstat(file).st_size)
    # A copy that the module forks must not change numbers, either.
    memory.madvise(mmap.MADV_DONTFORK)
    return memory


class Network:
    """The modules of a pack's members, which are made from their own seeds."""

    def __init__(self, request, folder, files=()):
        self.torch = torch = imported_torch()
        torch.set_num_threads(1)
        self.dtype = getattr(torch, request["dtype"])
        torch.set_default_dtype(self.dtype)
        self.device = opened(torch, request.get("device", "cpu"))
        self.is_far = self.device != torch.device("cpu")
        self.token_type = self.dtype if request.get("numbers") else torch.int64
        self.vocabulary, self.outputs, self.heads = request["vocabulary"], request["outputs"], request["heads"]
        make = with_class(load(request["archive"], folder), request["class"], torch)
        self.modules = [self._make(make, request["arguments"], seed) for seed in request["seeds"]]
        torch.set_grad_enabled(True)  # the module's code may have changed it
        self.files, self.views, self.gradients, self.buffers = files, [], [], []
        self.inputs, self.pending, self.cache, self.shape = b"", {}, None, (0, 0)

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
        if self._lazy(module):
            module.eval()
            with torch.no_grad():
                tokens = torch.zeros(1, 2, dtype=self.token_type)
                self._call(module, tokens, torch.arange(2).reshape(1, 2), torch.zeros(self.heads, 2, 2), None)
            for name in self._lazy(module):
                raise Refused(f"`forward` does not use the lazy layer of `{name}`: remove it, or give it its size")
        module._apply(lambda t: t.to(self.device, self.dtype if t.is_floating_point() else t.dtype))
        for part in module.modules():
            for name, value in vars(part).items():
                if isinstance(value, torch.optim.Optimizer):
                    raise Refused(f"the module has an optimizer, `{name}`: remove it, training.optimizer chooses one")
        if not any(p.requires_grad and p.numel() for p in module.parameters()):
            raise Refused("the module has no parameter to train")
        return module

    def _lazy(self, module):
        """The names of the tensors that have no shape yet."""
        both = itertools.chain(module.named_parameters(), module.named_buffers())
        return [name for name, value in both if self.torch.nn.parameter.is_lazy(value)]

    def _given(self, module):
        """The names of what `forward` takes."""
        known = ["tokens", "positions", "mask", "cache"] + ["attention_bias"] * (self.heads > 0)
        parameters = inspect.signature(module.forward).parameters
        for name, p in parameters.items():
            if name not in known and p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                may = f"it may take {', '.join(f'`{n}`' for n in known)}"
                advice = "give the network its `heads`" if name == "attention_bias" else may
                raise Refused(f"`forward` asks for `{name}`; {advice}")
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        # A module that does not name the cache would not keep one.
        return [name for name in known if name in parameters or (takes_any and name != "cache")]

    def _call(self, module, tokens, positions, bias, cache):
        mask = self.torch.ones(tokens.shape, dtype=self.torch.bool, device=tokens.device)
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
            if name not in saved:
                continue
            if value.is_complex() or value.layout != self.torch.strided:
                raise Refused(f"the buffer `{name}` is complex or sparse: {NOT_KEPT}")
            yield name, value

    def declare(self):
        def state(module):
            trained = {name for name, parameter in module.named_parameters() if parameter.requires_grad}
            return [{"name": n, "shape": list(v.shape), "trained": n in trained} for n, v in self._slots(module)]

        module = self.modules[0]
        first, *others = (state(one) for one in self.modules)
        if any(other != first for other in others):
            raise Refused("another seed makes parameters of other names or shapes")
        return {
            "state": first,
            # A layer of this name gives no maps.
            "attention": inspect.isroutine(getattr(type(module), "attention", None)),
            "cache": "cache" in self.given,
            "torch": self.torch.__version__,
            "python": platform.python_version(),
            "device": self.torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else str(self.device),
        }

    def bind(self, request, state=None):
        """Makes the parameters views of the state, or of the device's copy, and writes their initial values into it."""
        torch = self.torch
        self.state = torch.frombuffer(mapped(self.files[0]), dtype=self.dtype) if state is None else state
        self.near = self.state.to(self.device, copy=True) if self.is_far else self.state
        self.places = request["parameters"], request["gradients"], request["row"]
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
                    gradients[name] = self._view(request["gradients"] + offset, value)
            self.views.append(views)
            self.gradients.append(gradients)
            self.buffers.append(buffers)
            self._keep_buffers(member)
            self._copy(member, self.near, self.state)
        return {}

    def _view(self, offset, like):
        return self.near[offset : offset + like.numel()].view(like.shape)

    def _copy(self, member, source, target, gradients=False):
        """Copies a member's parameters and buffers, or its gradients, between the state and the device's copy of it."""
        if self.is_far:
            start, row = self.places[gradients] + member * self.places[2], self.places[2]
            target[start : start + row].copy_(source[start : start + row])

    def _buffers(self, member):
        """The name of each buffer, its view of the state, and the module's own tensor."""
        present = dict(self.modules[member].named_buffers()) if self.buffers[member] else {}
        for name, view in self.buffers[member].items():
            if name not in present or present[name].shape != view.shape:
                raise Refused(f"the buffer `{name}` has gone or changed its shape in training")
            yield name, view, present[name]

    def _keep_buffers(self, member):
        """Writes the buffers into the state."""
        for name, view, value in self._buffers(member):
            view.copy_(value)
            if not value.is_floating_point() and not self.torch.equal(view.to(value.dtype), value):
                raise Refused(f"the buffer `{name}` has whole numbers that {self.dtype} cannot hold: {NOT_KEPT}")

    def logits(self, member, tokens, positions, bias, seed, training, cached):
        """The logits of all tokens. Training replaces the buffers of the state."""
        torch, module = self.torch, self.modules[member]
        if module.training != training:
            module.train(training)
        self._copy(member, self.state, self.near)
        with torch.no_grad():
            for _, view, value in self._buffers(member):
                # An earlier pass of the step may need the tensor for its gradients.
                if not torch.equal(view.to(value.dtype), value):
                    value.copy_(view)
        if cached == 0:
            self.cache = {}
        self.seed(seed)
        with torch.set_grad_enabled(training):
            # The module may change copies in place.
            given = (one.to(self.device, copy=True) for one in (tokens, positions, bias))
            logits = self._call(module, *given, self.cache if cached >= 0 else None)
        self.shape = tuple(tokens.shape)
        expected = [*self.shape, self.outputs]
        if not isinstance(logits, torch.Tensor):
            raise Refused(f"`forward` returned {type(logits).__name__}; expected a tensor of logits {expected}")
        if list(logits.shape) != expected:
            axes = "batch, tokens (input and outputs), classes"
            raise Refused(f"`forward` returned logits of shape {list(logits.shape)}; expected {expected}: {axes}")
        if not logits.is_floating_point():
            raise Refused(f"`forward` returned logits of type {logits.dtype}; expected real numbers")
        if training:
            if not logits.requires_grad:
                raise Refused("no trained parameter has an influence on the logits")
            with torch.no_grad():
                self._keep_buffers(member)
            self._copy(member, self.near, self.state)
        return logits

    def add_gradients(self, member, read, gradient):
        """Adds the gradients of the parameters, by that of what was read of the logits, to the state's."""
        self._copy(member, self.state, self.near, gradients=True)
        read.backward(gradient.to(read))
        views = self.views[member]
        for name, parameter in self.modules[member].named_parameters():
            if parameter.data_ptr() != views[name].data_ptr():
                raise Refused(f"`forward` gave the parameter `{name}` new memory; change its values in place")
            if parameter.grad is not None and name in self.gradients[member]:
                self.gradients[member][name].add_(parameter.grad)
            parameter.grad = None
        self._copy(member, self.near, self.state, gradients=True)

    def maps(self, member):
        """Attention of the last forward pass, [layers, batch, heads, n, n]."""
        maps = list(self.modules[member].attention())
        shapes = [list(getattr(one, "shape", [])) for one in maps]
        rows, n = self.shape
        if not maps or any(len(s) != 4 or s != [rows, shapes[0][1], n, n] for s in shapes):
            expected = f"a tensor of the shape [{rows}, heads, {n}, {n}] for each layer: batch, heads, queries, keys"
            raise Refused(f"`attention` returned {shapes or 'nothing'}; expected {expected}")
        return self.torch.stack([one.detach() for one in maps])

    def _numbers(self, place, *shape, dtype=None):
        """A view of the inputs' file, which grows."""
        count = math.prod(shape)
        if not count:
            return self.torch.empty(shape)
        if len(self.inputs) < os.fstat(self.files[1]).st_size:
            self.inputs = mapped(self.files[1])
        return self.torch.frombuffer(self.inputs, dtype=dtype or self.dtype, count=count, offset=place).view(shape)

    def forward(self, request):
        member, rows, n, m, at = (request[name] for name in ("member", "rows", "tokens", "outputs", "at"))
        training, cached = request["training"], request["cached"]
        if request["pass"] == 0:
            self.pending = {}
        tokens = self._numbers(at["tokens"], rows, n, dtype=self.token_type)
        place_type = self.torch.float64 if request["real_positions"] else self.torch.int64
        positions = self._numbers(at["positions"], *request["positions"], dtype=place_type).expand(rows, n)
        bias = self._numbers(at["bias"], *request["bias"]).requires_grad_(training)
        read = self.logits(member, tokens, positions, bias, request["seed"], training, cached)[:, n - m :]
        self._numbers(at["logits"], *read.shape).copy_(read.detach())
        if training:
            self.pending[request["pass"]] = (member, read, self._numbers(at["gradient"], *read.shape), bias)
        return {}

    def backward(self, request):
        """Adds the gradients of a forward pass to the state's, and replaces the bias by its gradient."""
        member, read, gradient, bias = self.pending.pop(request["pass"])
        self.add_gradients(member, read, gradient)
        if request["bias"]:
            if bias.grad is None:
                raise Refused("`attention_bias` has no influence on the logits")
            bias.data.copy_(bias.grad)
        return {}

    def attention(self, request):
        """Writes the maps to the inputs' file, which it makes long enough."""
        maps = self.maps(request["member"])
        end = request["at"] + maps.numel() * self.state.element_size()
        os.ftruncate(self.files[1], max(end, os.fstat(self.files[1]).st_size))
        self._numbers(request["at"], *maps.shape).copy_(maps)
        return {"shape": list(maps.shape)}


class Alone(Network):
    """One module with a state of its own, as a worker would keep it."""

    def __init__(self, request, folder):
        super().__init__({**request, "seeds": [1]}, folder)
        self.own_positions = request.get("own_positions", False)
        self.declared = self.declare()
        self.slots = self.declared["state"]
        *offsets, self.row = itertools.accumulate((math.prod(slot["shape"]) for slot in self.slots), initial=0)
        bound = {"offsets": offsets, "row": self.row, "parameters": 0, "gradients": self.row}
        self.bind(bound, self.torch.zeros(2 * self.row, dtype=self.dtype))

    def read(self, tokens, outputs, seed, training, cached=-1):
        """The logits that the service reads; a training pass also replaces the gradients by those of their mean."""
        torch, (rows, n), before = self.torch, tokens.shape, max(0, cached)
        positions = torch.arange(before, before + n).expand(rows, n)
        bias = torch.zeros(self.heads, n, before + n, requires_grad=training)
        if self.own_positions:
            bias = bias.expand(rows, *bias.shape)
        read = self.logits(0, tokens, positions, bias, seed, training, cached)[:, n - outputs :]
        if not torch.isfinite(read).all():
            raise Refused("the logits have numbers that are not finite")
        if training:
            self.state[self.row :] = 0
            self.add_gradients(0, read, torch.full_like(read, 1 / read.numel()))
        return read.detach().clone()


def check(request, folder):
    """What people should know of the module before it trains, and whether anything is wrong."""
    first, again = Alone(request, folder), Alone(request, folder)
    torch, lines, wrong = first.torch, [], []
    rows, outputs = request["rows"], request["outputs_read"]
    shape = (rows, request["tokens"] + outputs)
    torch.manual_seed(0)
    tokens = torch.randn(shape) if request.get("numbers") else torch.randint(request["vocabulary"], shape)

    def expect(holds, otherwise, then=None):
        if not holds:
            wrong.append(otherwise)
        elif then:
            lines.append(then)

    def close(some, other):
        return torch.allclose(some, other, rtol=1e-3, atol=1e-4)

    trained = [slot for slot in first.slots if slot["trained"]]
    lines.append(f"{sum(math.prod(s['shape']) for s in trained):,} trained numbers in {len(trained)} parameters")
    where = f"torch {torch.__version__}, on {first.declared['device']}"
    lines.append(f"{len(first.slots) - len(trained)} buffers and fixed parameters; {where}")
    first.read(tokens, outputs, 1, training=True)
    lines.append(f"logits have the shape {[*shape, request['outputs']]}")
    unreached = [name for name, gradient in first.gradients[0].items() if not torch.count_nonzero(gradient)]
    expect(not unreached, f"no gradient reaches {', '.join(unreached[:SHOWN_TENSORS])}")
    again.state.copy_(first.state)
    here, resumed = (network.read(tokens, outputs, 2, training=True) for network in (first, again))
    same = torch.equal(here, resumed) and torch.equal(first.state, again.state)
    differs = "a resumed step differs: the module keeps state outside of its parameters and buffers"
    expect(same, differs, "a resumed step equals one that was not interrupted")
    # Hidden state would look like every mistake below.
    if not same:
        return {"lines": lines, "wrong": wrong}
    whole = first.read(tokens, outputs, 3, training=False)
    if first.declared["attention"]:
        layers, _, heads, _, _ = first.maps(0).shape
        lines.append(f"attention maps of {layers} layers with {heads} heads")
    elif request.get("maps"):
        wrong.append("evaluation.attention_lengths asks for maps, and the network has no method `attention`")
    one = first.read(tokens[:1], outputs, 3, training=False)
    depend = "the logits of a sequence depend on the others of its batch, also in evaluations"
    expect(close(whole[:1], one), depend)
    if request["causal"]:
        changed = tokens.clone()
        changed[:, -1] = (changed[:, -1] + 1) % request["vocabulary"]
        earlier = first.read(changed, outputs, 3, training=False)[:, :-1]
        depend = "the logits of a token depend on later tokens, which no text has yet when it is continued"
        expect(close(whole[:, :-1], earlier), depend)
        if first.declared["cache"]:
            parts, starts = [tokens[:, :2], *tokens[:, 2:].split(1, dim=1)], [0, *range(2, shape[1])]
            read = [first.read(part, part.shape[1], 3, False, cached=start) for part, start in zip(parts, starts)]
            differ = "logits with `cache` differ from those of the whole text at once"
            expect(close(torch.cat(read, 1)[:, -outputs:], whole), differ, "logits with `cache` equal those without")
    start, steps = time.monotonic(), 0
    while steps < 3 or time.monotonic() < start + 1:
        first.read(tokens, outputs, steps, training=True)
        steps += 1
    lines.append(f"{steps / (time.monotonic() - start):.1f} steps a second, without the optimizer's")
    return {"lines": lines, "wrong": wrong}


def serve(control, files, folder):
    network = None
    for line in control.makefile("rb"):
        request = json.loads(line)
        try:
            if request["do"] == "build":
                network = Network(request, folder, files)
                answer = network.declare()
            elif request["do"] == "check":
                answer = check(request, folder)
            else:
                answer = getattr(network, request["do"])(request)
        # SystemExit and KeyboardInterrupt too: the module must not end this program.
        except BaseException as error:  # noqa: BLE001
            # A device has more memory elsewhere, or at another time.
            is_local = isinstance(error, NotHere) or type(error).__name__ == "OutOfMemoryError"
            answer = {"error": describe(error, folder), "is_local": is_local}
        # The module may have closed or replaced it.
        with contextlib.suppress(Exception):
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
    # Slurm signals all processes of a job. The worker needs this one for its last checkpoint, and ends it then.
    for ignored in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
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
    except BaseException as error:  # noqa: BLE001
        # A signal handler of the module, between two calls. A copy that the module forked reads from nowhere.
        if not isinstance(error, OSError):
            traceback.print_exc()
        os._exit(1)
    # Threads of the module would keep the program alive.
    os._exit(0)


if __name__ == "__main__":
    main()
