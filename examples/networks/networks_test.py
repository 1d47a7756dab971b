"""The networks of this folder: their equations, the authors' numbers, padding, and what `lengthwise check` tries.

Needs Python with PyTorch.
"""

import importlib.util
import itertools
import json
import math
import os
import tempfile
import unittest
import unittest.mock

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
GOLDEN = os.path.join(ROOT, "tests", "golden", "baselines", "attention_variants.json")

# File, class and arguments of each network that is tried as a whole.
NETWORKS = [
    ("mamba.py", "Mamba", {}),
    ("mamba.py", "Mamba", {"zero_order_hold": True}),
    ("delta_net.py", "DeltaNet", {}),
    ("delta_net.py", "DeltaNet", {"negative_eigenvalues": False, "convolution": 1}),
    ("cope.py", "Cope", {}),
    ("cope.py", "Cope", {"divided": False, "positions": 3}),
    ("forgetting_attention.py", "Forgetting", {}),
    ("stick_breaking_attention.py", "StickBreaking", {}),
    ("stick_breaking_attention.py", "StickBreaking", {"attend_current": True, "remainder": True}),
]
VOCABULARY, OUTPUTS = 5, 3


def loaded(name, folder=HERE):
    found = importlib.util.spec_from_file_location(name[:-3], os.path.join(folder, name))
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


mamba, delta_net, cope = loaded("mamba.py"), loaded("delta_net.py"), loaded("cope.py")
forgetting, stick_breaking = loaded("forgetting_attention.py"), loaded("stick_breaking_attention.py")


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def causal(n):
    return torch.ones(n, n, dtype=torch.bool).tril()


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def dot(a, b):
    return sum(float(x) * float(y) for x, y in zip(a, b))


def weighted(weights, rows):
    return [sum(w * float(row[c]) for w, row in zip(weights, rows)) for c in range(len(rows[0]))]


def softmax(logits):
    total = sum(math.exp(logit) for logit in logits)
    return [math.exp(logit) / total for logit in logits]


def of_each_head(equation, *inputs):
    """Applies an equation of one head to each of a batch."""
    rows = [[equation(*(i[b, h] for i in inputs)) for h in range(inputs[0].shape[1])] for b in range(inputs[0].shape[0])]
    return tensor(rows)


class NetworkTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def assert_close(self, ours, expected, tolerance=1e-9):
        self.assertEqual(ours.shape, expected.shape)
        largest = (ours - expected).abs().max().item()
        self.assertLessEqual(largest, tolerance * max(1, expected.abs().max().item()))


class EquationsTest(NetworkTest):
    """Each function of a file against its equation in loops."""

    def setUp(self):
        super().setUp()
        self.q, self.k, self.v = (3 * random(2, 3, 7, 4) for _ in range(3))

    def test_selective_scan(self):
        batch, n, channels, states = 2, 6, 3, 4
        x, b, c = random(batch, n, channels), random(batch, n, states), random(batch, n, states)
        delta, a, d = random(batch, n, channels).exp(), -random(channels, states).exp(), random(channels)
        for hold in (False, True):
            expected = torch.zeros_like(x)
            for r in range(batch):
                for i in range(channels):
                    h = [0.0] * states
                    for t in range(n):
                        for s in range(states):
                            step, rate = delta[r, t, i].item(), a[i, s].item()
                            size = (math.exp(step * rate) - 1) / rate if hold else step
                            h[s] = math.exp(step * rate) * h[s] + size * b[r, t, s].item() * x[r, t, i].item()
                        expected[r, t, i] = dot(c[r, t], h) + d[i].item() * x[r, t, i].item()
            self.assert_close(mamba.selective_scan(x, delta, a, b, c, d, zero_order_hold=hold), expected)

    def test_delta_rule(self):
        k = self.k / self.k.norm(dim=-1, keepdim=True)
        beta = 2 * torch.sigmoid(random(2, 3, 7))

        def equation(q, k, v, beta):
            d, state, outputs = q.shape[1], torch.zeros(4, 4, dtype=torch.float64), []
            for t in range(q.shape[0]):
                step = torch.eye(d, dtype=torch.float64) - beta[t] * torch.outer(k[t], k[t])
                state = step @ state + beta[t] * torch.outer(k[t], v[t])
                outputs.append([dot(q[t], state[:, c]) / math.sqrt(d) for c in range(4)])
            return outputs

        self.assert_close(delta_net.delta_rule(self.q, k, self.v, beta), of_each_head(equation, self.q, k, self.v, beta))

    def test_cope(self):
        table = random(4, 5)
        for divided in (True, False):

            def equation(q, k, v, divided=divided):
                root, outputs = math.sqrt(4), []
                for i in range(7):
                    gates = [sigmoid(dot(q[i], k[j]) / root) for j in range(i + 1)]
                    logits = []
                    for j in range(i + 1):
                        place = min(sum(gates[j:]), 4)
                        share = place - math.floor(place)
                        low, high = dot(q[i], table[:, math.floor(place)]), dot(q[i], table[:, math.ceil(place)])
                        term = (1 - share) * low + share * high
                        logits.append(dot(q[i], k[j]) / root + (term / root if divided else term))
                    outputs.append(weighted(softmax(logits), v[: i + 1]))
                return outputs

            ours = cope.cope_attention(self.q, self.k, self.v, table, causal(7), divided=divided)[1]
            self.assert_close(ours, of_each_head(equation, self.q, self.k, self.v))

    def test_forgetting_attention(self):
        gate_logits = 2 * random(2, 3, 7)

        def equation(q, k, v, gates):
            outputs = []
            for i in range(7):
                fades = [sum(math.log(sigmoid(gates[m].item())) for m in range(j + 1, i + 1)) for j in range(i + 1)]
                weights = softmax([dot(q[i], k[j]) / math.sqrt(4) + fades[j] for j in range(i + 1)])
                outputs.append(weighted(weights, v[: i + 1]))
            return outputs

        ours = forgetting.forgetting_attention(self.q, self.k, self.v, gate_logits, causal(7))
        self.assert_close(ours, of_each_head(equation, self.q, self.k, self.v, gate_logits))

    def test_stick_breaking_attention(self):
        for visible, nearest in ((causal(7).tril(-1), 1), (causal(7), 0)):

            def equation(q, k, v, nearest=nearest):
                outputs = []
                for i in range(7):
                    left, weights = 1.0, [0.0] * 7
                    for j in range(i - nearest, -1, -1):
                        share = sigmoid(dot(q[i], k[j]) / math.sqrt(4))
                        weights[j] = share * left
                        left *= 1 - share
                    outputs.append([*weighted(weights, v), left])
                return outputs

            read, left = stick_breaking.stick_breaking_attention(self.q, self.k, self.v, visible)
            ours = torch.cat([read, left[..., None]], -1)
            self.assert_close(ours, of_each_head(equation, self.q, self.k, self.v))


class AuthorsNumbersTest(NetworkTest):
    """Outputs and gradients of the authors' programs (tests/golden/baselines)."""

    def compare(self, name, outputs):
        """`outputs` computes all outputs by their names from a case's settings and inputs."""
        with open(GOLDEN) as file:
            part = json.load(file)[name]
        self.assertTrue(part["cases"])
        for case in part["cases"]:
            for dtype, tolerance in ((torch.float64, 1e-9), (torch.float32, 1e-5)):
                with self.subTest(name, settings=case["settings"], dtype=dtype):
                    inputs = {
                        key: torch.tensor(value, dtype=dtype).requires_grad_() for key, value in case["inputs"].items()
                    }
                    found = outputs(case["settings"], **inputs)
                    self.assertEqual(sorted(found), sorted(case["outputs"]))
                    for key, expected in case["outputs"].items():
                        self.assert_close(found[key].detach().double(), tensor(expected), tolerance)
                    loss = (found[part["loss_of"]] * torch.tensor(case["loss_weights"], dtype=dtype)).sum()
                    self.assert_close(loss.detach().double(), tensor(case["loss"]), tolerance)
                    loss.backward()
                    for key, expected in case["gradients"].items():
                        self.assert_close(inputs[key].grad.double(), tensor(expected), tolerance)

    def test_delta_rule(self):
        self.compare("delta_rule", lambda settings, q, k, v, beta: {"output": delta_net.delta_rule(q, k, v, beta)})

    def test_cope(self):
        def outputs(settings, q, k, v, position_embedding):
            self.assertEqual(position_embedding.shape[-1], settings["positions"])
            divided = not settings["undivided_position_logits"]
            one_head = (part[:, None] for part in (q, k, v))
            found = cope.cope_attention(*one_head, position_embedding[0], causal(q.shape[1]), divided=divided)
            return {"attention": found[0][:, 0], "output": found[1][:, 0]}

        self.compare("cope", outputs)

    def test_forgetting_attention(self):
        def outputs(settings, q, k, v, forget_logit):
            self.assertEqual((settings["query_heads"], settings["window"]), (settings["key_heads"], None))
            heads_first = (part.transpose(1, 2) for part in (q, k, v, forget_logit))
            return {"output": forgetting.forgetting_attention(*heads_first, causal(q.shape[1])).transpose(1, 2)}

        self.compare("forgetting", outputs)

    def test_stick_breaking_attention(self):
        def outputs(settings, q, k, v):
            visible = causal(q.shape[2]).tril(0 if settings["attend_current"] else -1)
            read, left = stick_breaking.stick_breaking_attention(q, k, v, visible)
            return {"output": read, "remainder": left, "output_with_remainder": read + left[..., None] * v}

        self.compare("stick_breaking", outputs)


class WholeNetworksTest(NetworkTest):
    def for_each(self, claim):
        for file, name, arguments in NETWORKS:
            with self.subTest(file, **arguments):
                torch.manual_seed(0)
                network = getattr(loaded(file), name)(VOCABULARY, OUTPUTS, width=16, **arguments).double()
                for parameter in network.parameters():
                    # What starts at zero or at one would hide mistakes.
                    parameter.data += 0.3 * torch.randn_like(parameter)
                claim(network)

    def logits(self, network, tokens, mask=None):
        mask = torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask
        return network(tokens, torch.arange(tokens.shape[1]).repeat(len(tokens), 1), mask)

    def test_sequences_of_a_batch_do_not_depend_on_each_other(self):
        tokens = torch.randint(VOCABULARY, (4, 9))

        def claim(network):
            whole = self.logits(network, tokens)
            for row in range(4):
                self.assert_close(whole[row : row + 1], self.logits(network, tokens[row : row + 1]))
            self.assertGreater((whole[0] - whole[1]).abs().max().item(), 1e-3)

        self.for_each(claim)

    def test_padding_before_and_after_changes_nothing(self):
        tokens = torch.randint(VOCABULARY, (2, 9))

        def claim(network):
            expected = self.logits(network, tokens)
            for before, after in ((0, 4), (5, 0), (3, 2)):
                padded, mask = torch.randint(VOCABULARY, (2, before + 9 + after)), torch.zeros(2, before + 9 + after).bool()
                padded[:, before : before + 9], mask[:, before : before + 9] = tokens, True
                self.assert_close(self.logits(network, padded, mask)[:, before : before + 9], expected)

        self.for_each(claim)

    def test_later_tokens_change_nothing_and_earlier_ones_do(self):
        tokens = torch.randint(VOCABULARY, (2, 9))
        changed = tokens.clone()
        changed[:, 4] = (changed[:, 4] + 1) % VOCABULARY

        def claim(network):
            before, after = self.logits(network, tokens), self.logits(network, changed)
            self.assert_close(after[:, :4], before[:, :4])
            for place in range(4, 9):
                self.assertGreater((after - before)[:, place].abs().max().item(), 1e-6)

        self.for_each(claim)

    def test_only_negative_eigenvalues_turn_what_is_stored(self):
        for negative, lowest in ((False, 0), (True, -1)):
            layer = delta_net.Layer(4, 1, 1, negative_eigenvalues=negative)
            layer.beta.bias.data.fill_(40)
            with unittest.mock.patch.object(delta_net, "delta_rule", wraps=delta_net.delta_rule) as rule:
                layer(torch.randn(1, 3, 4), torch.ones(1, 3))
            eigenvalues = 1 - rule.call_args[0][3]
            self.assert_close(eigenvalues, torch.full_like(eigenvalues, lowest), 1e-6)

    @torch.no_grad()
    def test_stick_breaking_has_what_its_arguments_say(self):
        for attend_current, remainder in itertools.product((False, True), repeat=2):
            block = stick_breaking.Block(4, 1, attend_current, remainder).double()
            features = random(1, 1, 4)
            q, k, v = block.qkv(block.norm(features)).chunk(3, -1)
            share = sigmoid(dot(q[0, 0], k[0, 0]) / 2) if attend_current else 0
            expected = features + block.out(v * (1 if remainder else share))
            self.assert_close(block(features, causal(1)), expected + block.feed_forward(expected))

    def test_arguments_change_the_logits_of_the_same_weights(self):
        tokens = torch.randint(VOCABULARY, (2, 9))
        for file, name, argument, default in (
            ("mamba.py", "Mamba", "zero_order_hold", False),
            ("delta_net.py", "DeltaNet", "negative_eigenvalues", True),
            ("cope.py", "Cope", "divided", True),
            ("stick_breaking_attention.py", "StickBreaking", "attend_current", False),
            ("stick_breaking_attention.py", "StickBreaking", "remainder", False),
        ):
            with self.subTest(file, argument=argument):
                make = getattr(loaded(file), name)
                usual, given, other = (
                    make(VOCABULARY, OUTPUTS, width=16, **arguments).double()
                    for arguments in ({}, {argument: default}, {argument: not default})
                )
                weights = {key: value + 0.3 * torch.randn_like(value) for key, value in usual.state_dict().items()}
                for network in (usual, given, other):
                    network.load_state_dict(weights)
                self.assert_close(self.logits(given, tokens), self.logits(usual, tokens))
                self.assertGreater((self.logits(other, tokens) - self.logits(usual, tokens)).abs().max().item(), 1e-4)

    def test_lengthwise_check_finds_nothing_wrong(self):
        child = loaded("child.py", os.path.join(ROOT, "models", "python_network"))
        for file, name, arguments in NETWORKS:
            with self.subTest(file, **arguments), tempfile.TemporaryDirectory() as folder:
                archive = os.path.join(folder, "archive.json")
                with open(os.path.join(HERE, file)) as source, open(archive, "w") as written:
                    json.dump({"entry": file, "files": {file: source.read()}}, written)
                network = {"archive": archive, "class": name, "arguments": arguments, "dtype": "float32", "heads": 0}
                symbols = {"vocabulary": VOCABULARY, "outputs": OUTPUTS, "rows": 4, "tokens": 8, "outputs_read": 2}
                found = child.check({**network, **symbols, "causal": True}, folder)
                self.assertEqual(found["wrong"], [])
                self.assertIn("a resumed step equals one that was not interrupted", found["lines"])

    def test_a_file_has_at_most_120_lines(self):
        for file in {file for file, _, _ in NETWORKS}:
            with open(os.path.join(HERE, file)) as source:
                self.assertLessEqual(len(source.readlines()), 120, file)


if __name__ == "__main__":
    unittest.main()
