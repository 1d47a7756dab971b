"""`lengthwise web` in a browser, with a real server and a worker whose numbers are known."""
import asyncio
import collections
import contextlib
import csv
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
import unittest
import urllib.parse

import chromium
import service
from lengthwise._proto import event_pb2, experiment_service_pb2, fleet_service_pb2, worker_service_pb2
from lengthwise.connection import Connection, is_loopback_host, resolve
from lengthwise.web import access
from lengthwise.web.live import Feed, Feeds
from lengthwise.web.pages import Site, best_unseen_accuracy, read_chart_files, refresh_pause
from lengthwise.web.source import Source
from service import CLIENT, DEADLINE, ENVIRONMENT, SERVER, Numbers, lengthwise, specification

HOSTILE = '<img src=x onerror="window.hit=1">'
DESKTOP, PHONE = 1280, 390


class Web:
    """A running `lengthwise web`, or another command that shows the page."""

    def __init__(self, arguments: list, command: list | None = None) -> None:
        programs = {"SERVER": SERVER, "WORKER": os.environ.get("WORKER", "worker/lengthwise_worker")}
        environment = {f"LENGTHWISE_{name}_BINARY": os.path.abspath(path) for name, path in programs.items()}
        self.process = subprocess.Popen(
            [*(command or [sys.executable, "-m", "lengthwise", "web", "--listen", "127.0.0.1:0"]), *arguments],
            stdout=subprocess.PIPE, env={**ENVIRONMENT, **environment}, text=True,
        )  # fmt: skip
        lines = []
        for line in self.process.stdout:
            found = re.match(r"(https?://127\.0\.0\.1:(\d+))/\S*\?token=(\S+)    read-only; (?:Ctrl-C ends it|ends with the run)\n", line)
            if found:
                self.base, self.port, self.token = found[1], int(found[2]), found[3]
                return
            lines.append(line)
        raise RuntimeError(f"no address: {lines}")

    def close(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(DEADLINE)
        self.process.stdout.close()

    def __enter__(self) -> "Web":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def address(self, path: str) -> str:
        return f"{self.base}{path}{'&' if '?' in path else '?'}token={self.token}"

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict, bytes]:
        """Status, headers and body; with the cookie unless `headers` has another one."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
        with contextlib.closing(connection):
            connection.request(method, path, headers={"Cookie": f"lengthwise_{self.port}={self.token}", **headers})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def text(self, path: str) -> str:
        status, _, body = self.ask(path)
        if status != 200:
            raise RuntimeError(f"{path}: {status} {body.decode()}")
        return body.decode()


class WithExperiments(unittest.TestCase):
    """A server with an experiment that was trained, and the page of it."""

    @classmethod
    def setUpClass(cls):
        cls.server = service.Server()
        cls.addClassCleanup(cls.server.kill)
        cls.client = lengthwise.Client(cls.server.address)
        cls.addClassCleanup(cls.client.close)
        cls.experiment = cls.client.submit(specification("known", description=HOSTILE), owner="ada<b>")
        cls.worker = service.Worker(cls.server)
        cls.worker.run_all()
        cls.experiment.refresh()
        cls.path = f"/experiments/{cls.experiment.id}"
        cls.trial_path = f"{cls.path}/trials/{cls.experiment.trials()[2].id}"
        cls.web = Web(["--server", cls.server.address])
        cls.addClassCleanup(cls.web.close)
        cls.views = ["/", "/workers", cls.path, cls.trial_path]


class BestTest(unittest.TestCase):
    """The column "best" of the experiments."""

    def setUp(self):
        self.summary = experiment_service_pb2.SummarizeExperimentResponse()

    def add(self, unseen, score, loss=0.0, rate=0.001, task="bucket_sort"):
        cell = self.summary.cells.add(task=task, learning_rate=rate, selection_loss=loss)
        cell.selection.trials = cell.unseen_accuracy.trials = 1
        cell.selection.mean, cell.unseen_accuracy.mean = score, unseen

    def test_score_then_loss_then_rate_choose(self):
        self.add(0.9, 0.5)
        self.add(0.2, 1, loss=0.2)
        self.assertEqual(best_unseen_accuracy(self.summary), 0.2)
        self.add(0.3, 1, loss=0.1)
        self.assertEqual(best_unseen_accuracy(self.summary), 0.3)
        self.add(0.4, 1, loss=0.1, rate=0.0001)
        self.assertEqual(best_unseen_accuracy(self.summary), 0.4)

    def test_tasks_are_not_ranked_together(self):
        self.add(0.5, 0.5)
        self.add(0.2, 0.2, task="even_pairs")
        self.assertIsNone(best_unseen_accuracy(self.summary))
        self.assertIsNone(best_unseen_accuracy(experiment_service_pb2.SummarizeExperimentResponse()))


class AccessTest(WithExperiments):
    def test_nothing_is_served_without_the_token(self):
        for path in [*self.views, "/events", "/static/uplot.js", f"{self.path}/events", f"{self.path}/report.html", "/none"]:
            for cookie in ("", f"lengthwise_{self.web.port}=wrong", f"other={self.web.token}"):
                status, headers, body = self.web.ask(path, Cookie=cookie)
                self.assertEqual(status, 401, path)
                self.assertNotIn("set-cookie", headers)
                self.assertNotIn(b"known", body)
        self.assertEqual(self.web.ask("/?token=wrong")[0], 401)

    def test_token_becomes_a_cookie(self):
        status, headers, _ = self.web.ask(f"{self.path}?step=3&token={self.web.token}", Cookie="")
        self.assertEqual((status, headers["location"]), (303, f"{self.path}?step=3"))
        cookie = headers["set-cookie"].lower()
        self.assertIn("httponly", cookie)
        self.assertIn("samesite=lax", cookie)

    def test_foreign_hosts_and_origins_are_refused(self):
        for host in ("evil.example", f"evil.example:{self.web.port}", "127.0.0.1.evil.example", "localhost@evil.example"):
            self.assertEqual(self.web.ask("/", Host=host)[0], 421, host)
        self.assertEqual(self.web.ask("/", Host=f"localhost:{self.web.port}")[0], 200)
        for origin in ("http://evil.example", "null", f"http://127.0.0.1:{self.web.port + 1}"):
            self.assertEqual(self.web.ask("/", Origin=origin)[0], 403, origin)
        self.assertEqual(self.web.ask("/", Origin=self.web.base)[0], 200)

    def test_page_changes_nothing(self):
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            self.assertEqual(self.web.ask(self.path, method)[0], 405)

    def test_policy_allows_no_script_but_the_pages_own(self):
        for path in [*self.views, "/none"]:
            policy = self.web.ask(path)[1]["content-security-policy"]
            self.assertIn("default-src 'none'; script-src 'self'; style-src 'self'", policy)
            self.assertNotIn("unsafe", policy)

    def test_other_machines_need_tls_or_a_flag(self):
        def run(*arguments: str) -> tuple[int, str]:
            command = [sys.executable, "-m", "lengthwise", "web", "--server", self.server.address, *arguments]
            done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=DEADLINE)
            return done.returncode, done.stderr

        code, error = run("--listen", "0.0.0.0:0")
        self.assertEqual(code, 2)
        self.assertIn("--certificate and --key, or --insecure_plain_text", error)
        self.assertEqual(run("--certificate", "a.pem")[0], 2)
        code, error = run("--listen", "127.0.0.1:0", "--certificate", "/nothing.pem", "--key", "/nothing.key")
        self.assertEqual(code, 2)
        self.assertIn("--certificate /nothing.pem and --key /nothing.key: No such file", error)
        self.assertIn("expected HOST:PORT", run("--listen", "7080")[1])
        busy = run("--listen", f"127.0.0.1:{self.web.port}")
        self.assertEqual(busy[0], 1)
        self.assertIn("choose another with --listen", busy[1])

    @unittest.skipUnless(shutil.which("openssl"), "no openssl is installed to make a certificate with")
    def test_certificate_is_served_and_the_cookie_needs_it(self):
        directory = service.new_directory()
        certificate, key = str(directory / "web.pem"), str(directory / "web.key")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=web",
             "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
            check=True, capture_output=True,
        )  # fmt: skip
        with Web(["--server", self.server.address, "--certificate", certificate, "--key", key]) as web:
            self.assertTrue(web.base.startswith("https:"))
            trusted = ssl.create_default_context(cafile=certificate)
            connection = http.client.HTTPSConnection("127.0.0.1", web.port, timeout=DEADLINE, context=trusted)
            with contextlib.closing(connection):
                connection.request("GET", f"/?token={web.token}")
                answer = connection.getresponse()
                self.assertEqual(answer.status, 303)
                self.assertIn("secure", answer.getheader("set-cookie").lower())

    def test_hosts_of_this_machine_are_known(self):
        self.assertTrue(is_loopback_host("127.0.0.9") and is_loopback_host("::1") and is_loopback_host("localhost"))
        self.assertFalse(is_loopback_host("0.0.0.0") or is_loopback_host("10.0.0.5") or is_loopback_host("example.org"))
        self.assertIn("nodes-7.example", access.known_hosts("Nodes-7.example"))

    def test_chart_library_is_the_released_one(self):
        self.assertEqual(sorted(read_chart_files()), ["uplot.css", "uplot.js"])

    def test_scripts_and_styles_are_served_as_such(self):
        files = {"uplot.js", "charts.js", "page.js", "attention_viewer.js", "uplot.css", "web.css", "report.css"}
        for file in files:
            status, headers, _ = self.web.ask(f"/static/{file}")
            kind = "text/css" if file.endswith(".css") else "text/javascript"
            self.assertEqual((status, headers["content-type"]), (200, f"{kind}; charset=utf-8"), file)
        for file in ("report.html", "..%2Fpages.py", "__init__.py"):
            self.assertEqual(self.web.ask(f"/static/{file}")[0], 404, file)


class TokenTest(unittest.TestCase):
    def test_page_shows_what_its_users_token_may_read(self):
        server = service.Server()
        self.addCleanup(server.kill)
        server.kill()
        token = server.directory / "admin.token"
        data = server.directory / "data"
        subprocess.run([SERVER, "--data_dir", data, "--create_admin_token", token], check=True, capture_output=True, env=ENVIRONMENT)
        server.start()
        with lengthwise.Client(server.address, token_file=token) as client:
            client.submit(specification("secret"))
        with Web(["--server", server.address, "--token_file", str(token)]) as web:
            self.assertIn("secret-1", web.text("/"))
        with Web(["--server", server.address]) as web:
            for path in ("/", "/experiments/secret-1", "/experiments/secret-1/trials.csv"):
                status, _, body = web.ask(path)
                self.assertEqual(status, 403, path)
                self.assertIn(b"token", body)
                self.assertNotIn(b"bucket_sort", body)


class NumbersTest(WithExperiments):
    def test_chart_has_the_numbers_of_the_figure(self):
        from lengthwise import plots
        from lengthwise.plots import numbers

        for figure in ("accuracy_by_length", "loss", "accuracy_over_steps", "accuracy_over_time"):
            expected = numbers.to_dictionary(plots.describe(figure, [self.experiment]))
            self.assertEqual(json.loads(self.web.text(f"{self.path}/figures/{figure}.json")), expected, figure)
        one = self.web.text(f"{self.path}/figures/accuracy_by_length.csv")
        self.assertEqual(one, numbers.to_csv(plots.describe("accuracy_by_length", [self.experiment])))
        self.assertIn("<svg", self.web.text(f"{self.path}/figures/loss.svg"))

    def test_results_are_those_of_results(self):
        results = self.experiment.results()
        html = self.web.text(f"{self.path}?part=results")
        for row in results.itertuples():
            of_row = re.search(f'<th scope="row">{row.encoding}</th>.*?</tr>', html, re.S)[0]
            cells = dict(re.findall(r'<td data-label="([^"]*)"[^>]*>(.*?)</td>', of_row, re.S))
            self.assertEqual(cells["Seen"], f"{100 * row.seen_accuracy:.1f}")
            self.assertEqual(cells["Unseen"], f"{100 * row.unseen_accuracy:.1f}")
            self.assertEqual(cells["±"], f"{100 * row.unseen_accuracy_deviation:.1f}")
            self.assertEqual(cells["Seeds"], "2")
            # What guessing one of five symbols scores.
            self.assertEqual(cells["Chance"], "20.0")
            self.assertIn(row.best_trial, cells["Best trial"])

    def test_published_numbers_stand_beside_those_of_trials(self):
        paper = self.client.submit(specification("paper", protocol="randomized_positional_encodings", seeds=0, encodings="sin_cos"))
        self.worker.run_all()
        text = self.web.text(f"/experiments/{paper.id}?part=published")
        (row,) = re.findall(r"<tr>(?:(?!</tr>).)*Bucket Sort.*?</tr>", text.partition("Table 1 of Ruoss")[2].partition("</table>")[0], re.S)
        # What Table 1 prints for bucket sort with sin/cos.
        self.assertIn("30.1", row)
        self.assertIn("steps 200 (paper: 2,000,000)", text)

    def test_experiments_are_found_filtered_and_sorted(self):
        self.client.submit(specification("waiting", seeds=0, encodings="none"), owner="grace").cancel()

        def shown(query: str) -> list[str]:
            return re.findall(r'<th scope="row"><a href="/experiments/([^"]*)"', self.web.text(f"/?{query}"))

        self.assertEqual(shown("q=GRACE"), ["waiting-1"])
        self.assertIn("waiting-1", shown("state=CANCELLED"))
        self.assertNotIn("known-1", shown("state=CANCELLED"))
        self.assertEqual(shown("sort=name"), sorted(shown("")))
        self.assertEqual(shown("sort=-name"), sorted(shown(""), reverse=True))

    def test_heat_map_follows_the_step(self):
        # Trials 2 and 3 are those of sin_cos; Numbers says what they scored.
        def row(step: str) -> list:
            html = self.web.text(f"{self.path}?part=heat{step}")
            of_row = re.search(r'<th scope="row">sin / cos</th>(.*?)</tr>', html, re.S)[1]
            return re.findall(r">([\d.]+)</td>", of_row)

        def mean(length: int, step: int) -> str:
            return f"{50 * (Numbers(2).accuracy(length, step) + Numbers(3).accuracy(length, step)):.1f}"

        self.assertEqual(row(""), [mean(length, 200) for length in Numbers.LENGTHS])
        self.assertEqual(row("&step=100"), [mean(length, 100) for length in Numbers.INTERVAL_LENGTHS])
        self.assertEqual(row("&step=199"), row("&step=100"))

    def test_chosen_trials_alone_are_shown(self):
        chosen = json.loads(self.web.text(f"{self.path}/figures/accuracy_by_length.json?encoding=none&seed=1"))
        (series,) = chosen["panels"][0]["series"]
        self.assertEqual(series["y"], [Numbers(1).accuracy(length) for length in Numbers.LENGTHS])
        html = self.web.text(f"{self.path}?part=trials&encoding=none&seed=1")
        self.assertEqual(len(re.findall('<th scope="row">', html)), 1)
        self.assertEqual(self.web.ask(f"{self.path}?part=trials&encoding=nonee")[0], 404)

    def test_downloads_are_of_all_trials(self):
        rows = list(csv.DictReader(self.web.text(f"{self.path}/trials.csv").splitlines()))
        expected = [trial.unseen_accuracy for trial in self.experiment.trials()]
        self.assertEqual([float(row["unseen"]) for row in rows], expected)
        report = self.web.text(f"{self.path}/report.html")
        self.assertIn("What was run, and on what", report)

    def test_trials_come_in_pages(self):
        many = self.client.submit(specification("many", seeds=list(range(60))))
        many.cancel()

        def numbers(query: str) -> list[int]:
            html = self.web.text(f"/experiments/{many.id}?part=trials{query}")
            return list(map(int, re.findall(r'data-label="Number" class="right">(\d+)<', html)))

        self.assertEqual(numbers(""), list(range(100)))
        self.assertIn("1 to 100 of 120", self.web.text(f"/experiments/{many.id}"))
        self.assertEqual(numbers("&page=1"), list(range(100, 120)))
        self.assertEqual(numbers("&sort=-index")[:2], [119, 118])
        # Sixty seeds are written, not ticked.
        self.assertIn('<input name="seed" value="0..2 59">', self.web.text(f"/experiments/{many.id}?seed=0..2+59"))
        self.assertEqual(numbers("&seed=0..2+59"), [0, 1, 2, 59, 60, 61, 62, 119])

    def test_trials_are_sorted_by_the_server(self):
        html = self.web.text(f"{self.path}?part=trials&sort=-unseen")
        self.assertEqual(re.findall(r'data-label="Number" class="right">(\d)', html), ["3", "2", "1", "0"])

    def test_loss_by_time_has_every_point(self):
        picture = json.loads(self.web.text(f"{self.trial_path}/figures/loss_over_time.json"))
        self.assertEqual(picture["panels"][0]["series"][0]["y"], [Numbers(2).loss(step) for step in Numbers.STEPS])

    def test_heat_map_has_the_rates_of_the_results_at_every_step(self):
        several = self.client.submit(specification("several", seeds=0, encodings="none", learning_rates=[0.001, 0.01]))
        # The first rate is better during training at seen lengths and in the end at unseen ones; the rule is "seen".
        scores = {0.001: ([0.75, 0.25], [0.5, 0.5, 0.95, 0.95]), 0.01: ([0.15, 0.85], [0.9, 0.9, 0.1, 0.1])}
        while lease := self.worker.acquire():
            (leased,) = lease.trials
            during, ended = scores[leased.specification.learning_rate]
            evaluations = [
                event_pb2.LengthAccuracies(lengths=[2, 6], accuracies=during, losses=[1, 1], sequences=10),
                event_pb2.LengthAccuracies(final=True, lengths=Numbers.LENGTHS, accuracies=ended, losses=[1] * 4, sequences=10),
            ]
            model = Numbers(0).model()
            checkpoint = event_pb2.Checkpoint(sha256=hashlib.sha256(model).hexdigest(), size_bytes=len(model))
            self.worker._upload(lease, leased, model, checkpoint)
            outcome = event_pb2.Outcome(kind="COMPLETED", training_steps=200)
            self.worker._send(lease, leased, 1, [
                event_pb2.Event(step=100, length_accuracies=evaluations[0]),
                event_pb2.Event(step=200, checkpoint=checkpoint),
                event_pb2.Event(step=200, length_accuracies=evaluations[1]),
                event_pb2.Event(step=200, outcome=outcome),
            ])  # fmt: skip
        for step, shown in (("", ["90.0", "90.0", "10.0", "10.0"]), ("&step=100", ["15.0", "85.0"])):
            html = self.web.text(f"/experiments/{several.id}?part=heat{step}")
            self.assertEqual(re.findall(r'<td class="level\d+">([^<]*)</td>', html), shown)
        self.assertIn(">0.01<", self.web.text(f"/experiments/{several.id}?part=results"))
        # The rule of the address is that of all parts.
        html = self.web.text(f"/experiments/{several.id}?part=heat&select=unseen")
        self.assertEqual(re.findall(r'<td class="level\d+">([^<]*)</td>', html), ["50.0", "50.0", "95.0", "95.0"])
        chart = json.loads(self.web.text(f"/experiments/{several.id}/figures/accuracy_by_length.json?select=unseen"))
        self.assertEqual(chart["panels"][0]["series"][0]["y"], [0.5, 0.5, 0.95, 0.95])
        refused, _, body = self.web.ask(f"/experiments/{several.id}?select=best")
        self.assertEqual(refused, 400)
        self.assertIn(b"expected seen or unseen", body)

    def test_best_trial_is_by_the_rule_of_the_address(self):
        html = self.web.text(f"{self.path}?part=results&select=unseen")
        best = re.findall(r'<td data-label="Best trial"><a href="([^"]*)"', html)
        self.assertEqual([one.endswith("?select=unseen") for one in best], [True, True])
        self.assertIn("the best of its task", self.web.text(best[0]))

    def test_loss_by_time_of_an_experiment_is_at_the_times_of_its_evaluations(self):
        picture = json.loads(self.web.text(f"{self.path}/figures/loss_over_time.json"))
        # 100 steps a second.
        self.assertEqual(picture["panels"][0]["series"][0]["x"], [step / 100 for step in Numbers.STEPS])

    def test_wrong_symbols_of_answers_are_marked(self):
        asked = self.client.submit(specification("asked", seeds=0, encodings="none"))
        lease = self.worker.acquire()
        answers = [
            event_pb2.Answer(length=2, input="1 0", expected=["0", "1"], given=["0", "1"], separator=" "),
            event_pb2.Answer(length=2, sequence=4, input=HOSTILE, expected=["0", "1"], given=["1"], wrong=[0, 1], separator=" "),
        ]
        self.worker._send(lease, lease.trials[0], 1, [event_pb2.Event(step=1, answer=one) for one in answers])
        html = self.web.text(f"/experiments/{asked.id}/trials/{asked.trials()[0].id}?part=answers")
        self.assertIn("Length 2: 1 of 2 shown answers without a mistake", html)
        self.assertIn('<td data-label="Expected">0 1</td>\n<td data-label="Given"><span>0 1</span></td>', html)
        self.assertIn('<span><mark title="wrong">1</mark> <mark title="wrong">_</mark></span>', html)
        self.assertIn("&lt;img", html)
        self.assertNotIn("<img", html)
        self.assertIn("No answers are stored", self.web.text(f"{self.trial_path}?part=answers"))

    def test_sorted_trials_stay_sorted_and_in_view(self):
        html = self.web.text(f"{self.path}?sort=-unseen&encoding=none")
        self.assertIn('<input type="hidden" name="sort" value="-unseen">', html)
        links = re.findall(r'<th scope="col" class="[^"]*"[^>]*><a href="([^"]*)"', html)
        self.assertIn(f"{self.path}?encoding=none&amp;sort=unseen#trials", links)
        self.assertIn('name="sort" value="name"', self.web.text("/?sort=name"))

    def test_workers_tell_what_they_wait_for(self):
        service.Worker(self.server, "held")

        def call(request, response) -> str:
            self.worker._connection.call(request, response)
            return self.web.text("/workers?part=workers")

        def state(html: str, worker: str) -> str:
            return re.search(rf'<th scope="row">{worker}</th>.*?</tr>', html, re.S)[0]

        html = call(fleet_service_pb2.HoldLeasesRequest(worker="held", reason="new disks"), fleet_service_pb2.HoldLeasesResponse)
        self.assertIn('<span class="state drained">drained</span>', state(html, "held"))
        self.assertIn(": new disks", state(html, "held"))
        self.assertNotIn("new disks", state(html, "python-1"))
        html = call(fleet_service_pb2.HoldLeasesRequest(all=True, reason="new racks"), fleet_service_pb2.HoldLeasesResponse)
        self.assertIn(": new racks", state(html, "python-1"))
        html = call(fleet_service_pb2.ResumeLeasesRequest(all=True), fleet_service_pb2.ResumeLeasesResponse)
        self.assertNotIn("new racks", html)

    def test_workers_tell_their_memory(self):
        measured = worker_service_pb2.WorkerMeasurements(resident_memory_bytes=1_500_000_000)
        measured.gpu.memory_used_bytes, measured.gpu.memory_total_bytes = 20_500_000_000, 80_000_000_000
        service.Worker(self.server, "large").call(measurements=measured)
        self.assertIn("1.5 GB, GPU 20.5 of 80.0 GB", self.web.text("/workers?part=workers"))

    def test_reconnect_goes_on_after_the_last_event(self):
        cookie = {"Cookie": f"lengthwise_{self.web.port}={self.web.token}"}
        connection = http.client.HTTPConnection("127.0.0.1", self.web.port, timeout=DEADLINE)
        with contextlib.closing(connection):
            # The browser had reached less than its page's address says.
            connection.request("GET", f"{self.path}/events?after=999999", headers={**cookie, "Last-Event-ID": "0"})
            events = connection.getresponse()
            lines = [events.readline() for _ in range(4)]
        self.assertEqual(lines[3], b"event: change\n", lines)

    def test_wrong_addresses_say_so(self):
        for path in ("/experiments/none-1", f"{self.path}/trials/none", "/experiments/none-1/figures/loss.csv", "/elsewhere"):
            status, _, body = self.web.ask(path)
            self.assertEqual(status, 404, path)
            self.assertIn(b'role="alert"', body)
        for wrong in ("part=heat&step=x", "part=results&rate=x"):
            self.assertEqual(self.web.ask(f"{self.path}?{wrong}")[0], 400)
        self.assertIn("unknown figure", self.web.text(f"{self.path}/figures/lss.json"))


@unittest.skipIf(chromium.PROGRAM is None, chromium.WHY_NOT)
class BrowserTest(WithExperiments):
    def open(self, path: str, width: int = DESKTOP, dark: bool = False) -> chromium.Page:
        page = chromium.Page(self.web.address(path), width, 900, dark)
        self.addCleanup(page.close)
        return page

    def each(self, paths: list, width: int = DESKTOP, dark: bool = False):
        """The pages, one after the other in one window: a browser takes longer to start than a page to load."""
        page = None
        for path in paths:
            if page is None:
                page = self.open(path, width, dark)
            else:
                page.open(self.web.address(path))
            yield path, page

    def assert_quiet(self, page: chromium.Page) -> None:
        """Nothing failed, was refused by the policy, or was asked of another place."""
        page.collect()
        self.assertEqual(page.messages, [])
        foreign = [url for url in page.requests if urllib.parse.urlsplit(url).netloc != f"127.0.0.1:{self.web.port}"]
        self.assertEqual(foreign, [])

    def test_every_view_shows_all_of_itself(self):
        drawn = "[...document.querySelectorAll('figure.chart')].every((one) => one.querySelector('canvas'))"
        loaded = "[...document.querySelectorAll('[data-lazy]')].every((one) => one.innerHTML)"
        for _, page in self.each(self.views):
            page.wait_for(f"{drawn} && {loaded} && document.getElementById('live').textContent === 'live'")
            self.assert_quiet(page)

    def test_views_fit_a_phone(self):
        for dark in (False, True):
            for path, page in self.each(self.views, PHONE, dark):
                page.wait_for("[...document.querySelectorAll('figure.chart')].every((one) => one.querySelector('canvas'))")
                self.assertEqual(page.evaluate("document.documentElement.scrollWidth"), PHONE, path)

    def test_dark_paper_is_dark(self):
        colors = [self.open("/", dark=dark).evaluate("getComputedStyle(document.body).backgroundColor") for dark in (False, True)]
        self.assertEqual(colors, ["rgb(255, 255, 255)", "rgb(20, 24, 31)"])

    def test_text_of_others_stays_text(self):
        failing = self.client.submit(specification("failing", description=HOSTILE, seeds=0, encodings="none"), owner=HOSTILE)
        lease = self.worker.acquire()
        log = [
            event_pb2.Event(log_line=event_pb2.LogLine(severity="ERROR", text=HOSTILE)),
            event_pb2.Event(outcome=event_pb2.Outcome(kind="FAILED_PERMANENTLY", reason=HOSTILE)),
        ]
        self.worker._send(lease, lease.trials[0], 1, log)
        path = f"/experiments/{failing.id}"
        views = ["/", path, f"{path}/trials/{failing.trials()[0].id}", f"/?q={urllib.parse.quote(HOSTILE)}"]
        for _, page in self.each(views):
            page.wait_for("[...document.querySelectorAll('[data-lazy]')].every((one) => one.innerHTML)")
            page.wait_for(f"document.documentElement.textContent.includes({json.dumps(HOSTILE)}) || location.search")
            self.assertEqual(page.evaluate("document.querySelectorAll('img').length"), 0)
            self.assertIsNone(page.evaluate("window.hit ?? null"))
            self.assert_quiet(page)

    def test_slider_changes_the_heat_map_and_the_address(self):
        page = self.open(self.path)
        page.wait_for("document.querySelector('input[type=range]')")
        page.evaluate("{const s = document.querySelector('input[type=range]'); s.value = 0; "
                      "s.dispatchEvent(new Event('input', {bubbles: true}));}")
        page.wait_for("document.querySelectorAll('.heat td[class]').length === 4")
        self.assertEqual(page.evaluate("location.search"), "?step=100")

    def test_lines_are_hidden_by_keyboard(self):
        page = self.open(self.path)
        page.wait_for("document.querySelector('.u-line th')")
        page.evaluate("{const name = document.querySelector('.u-line th'); name.focus(); document.activeElement.dispatchEvent("
                      "new KeyboardEvent('keydown', {key: 'Enter'}));}")
        page.wait_for("document.querySelector('.u-line').classList.contains('u-off')")

    def test_charts_zoom_by_keyboard(self):
        page = self.open(self.path)
        chart = "document.querySelector('figure.chart .panels > div > div:last-child').chart"
        page.wait_for(f"document.querySelector('figure.chart')?.picture && {chart}")
        width = f"{chart}.scales.x.max - {chart}.scales.x.min"
        whole = page.evaluate(width)
        for key, part in (("+", 0.6), ("ArrowRight", 0.6), ("-", 0.996), ("Escape", 1)):
            page.evaluate(f"{chart}.over.focus(); document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}'}}))")
            page.wait_for(f"Math.abs(({width}) / {whole} - {part}) < 0.001")

    def test_attention_has_tokens_and_weights(self):
        page = self.open(self.trial_path)
        page.wait_for("document.querySelector('#attention-viewer output').textContent")
        # Query and key 2, the second of two layers, the first head.
        page.evaluate("{const [, , , layer, head] = document.querySelectorAll('#attention-viewer select'); layer.selectedIndex = 1; "
                      "head.selectedIndex = 1; layer.dispatchEvent(new Event('change')); const c = document.querySelector('#attention-viewer canvas');"
                      "c.focus(); for (const key of ['ArrowRight', 'ArrowDown']) c.dispatchEvent(new KeyboardEvent('keydown', {key}));}")
        weight = Numbers(2).attention()[1, 0, 1, 1]
        expected = f"input 2 (symbol 2) looks at input 2 (symbol 2): {round(100 * round(255 * float(weight)) / 255, 1)} %"
        self.assertEqual(page.evaluate("document.querySelector('#attention-viewer output').textContent"), expected)
        # The address has what is chosen.
        shown = page.evaluate("location.hash")
        self.assertEqual(shown, "#attention=0,0,0,1,1")
        other = chromium.Page(self.web.address(self.trial_path) + shown, DESKTOP, 900)
        self.addCleanup(other.close)
        other.wait_for("document.querySelector('#attention-viewer output').textContent")
        chosen = "[...document.querySelectorAll('#attention-viewer select')].map((one) => one.selectedIndex).join()"
        self.assertEqual(other.evaluate(chosen), "0,0,0,1,1")


@unittest.skipIf(chromium.PROGRAM is None, chromium.WHY_NOT)
class LiveTest(unittest.TestCase):
    """A trial that trains while its page is open."""

    def setUp(self):
        # No heartbeats are sent here.
        self.server = service.Server(lease_duration="10m")
        self.addCleanup(self.server.kill)
        client = lengthwise.Client(self.server.address)
        self.addCleanup(client.close)
        self.experiment = client.submit(specification("live", seeds=0, encodings="none"))
        self.worker = service.Worker(self.server)
        self.lease = self.worker.acquire()
        self.sequence = 1
        self.web = Web(["--server", self.server.address])
        self.addCleanup(self.web.close)
        self.path = f"/experiments/{self.experiment.id}"
        self.page = chromium.Page(self.web.address(f"{self.path}/trials/{self.experiment.trials()[0].id}"), DESKTOP)
        self.addCleanup(self.page.close)

    def send(self, step: int) -> None:
        """A point of the loss curve and a line of the log."""
        points = event_pb2.TrainingPoints(steps=[step], losses=[1 / step], accuracies=[0.5], gradient_norms=[1], lengths=[2])
        line = event_pb2.LogLine(severity="INFO", text=f"line {step}.")
        facts = [event_pb2.Event(step=step, training_points=points), event_pb2.Event(step=step, log_line=line)]
        self.worker._send(self.lease, self.lease.trials[0], self.sequence, facts)
        self.sequence += len(facts)

    def wait_for(self, steps: list) -> None:
        """Until the page has the points of these steps, and the lines, each once."""
        figure = "document.querySelector('figure.chart')"
        self.page.wait_for(f"{figure}.dataset.points === '{len(steps)}' && {figure}.dataset.last === '{steps[-1]}'")
        lines = "[...document.querySelectorAll('.log li')].map((one) => /line (\\d+)\\./.exec(one.textContent)?.[1]).filter(Boolean)"
        self.page.wait_for(f"{lines}.join() === '{','.join(map(str, steps))}'")

    def test_recorded_point_appears(self):
        self.send(1)
        self.wait_for([1])
        self.send(2)
        self.wait_for([1, 2])

    def test_what_is_below_a_changing_chart_is_loaded(self):
        # The chart changes while it is loaded the first time, and its next numbers never come.
        fetch = """{const fetched = window.fetch; window.fetch = async (address, options) => {
            if (options.headers["X-Refresh"]) await new Promise(() => {});
            if (address.includes("/loss.json")) await new Promise((done) => setTimeout(done, 1000));
            return fetched(address, options);
        };}"""
        self.page._call("Page.addScriptToEvaluateOnNewDocument", source=fetch)
        stop = threading.Event()

        def train() -> None:
            step = 0
            while not stop.wait(0.05):
                step += 1
                self.send(step)

        thread = service.in_background(train)
        self.addCleanup(thread.join)
        self.addCleanup(stop.set)
        self.page.open(f"{self.web.base}{self.path}")
        self.page.wait_for("document.querySelector('[data-part=about]').innerHTML")

    def test_progress_is_shown(self):
        (trial,) = self.lease.trials
        progress = event_pb2.TrialProgress(
            trial=trial.trial, attempt=1, phase="TRAINING", done=50, total=200, steps_per_second=2, loss=1, seconds_left=75
        )
        stop = threading.Event()

        def send_heartbeats() -> None:
            while not stop.wait(0.2):
                self.worker.call(progress=[progress])

        thread = service.in_background(send_heartbeats)
        self.addCleanup(thread.join)
        self.addCleanup(stop.set)
        self.page.wait_for("document.querySelector('[data-rate]').textContent === '50 of 200, 2 steps/s, 1:15 left'")
        self.assertEqual(self.page.evaluate("document.querySelector('progress[data-trial]').value"), 50)
        self.page.open(f"{self.web.base}/")
        # A quarter of the only trial.
        self.page.wait_for("document.querySelector('progress[data-experiment]').value === 0.25")
        self.page.wait_for("document.querySelector('[data-left]').textContent === '1:15'")

    def test_restart_leaves_neither_gap_nor_double(self):
        self.send(1)
        self.wait_for([1])
        self.server.kill()
        self.page.wait_for("document.getElementById('live').textContent.startsWith('not live')")
        self.server.start()
        self.worker.call()
        self.send(2)
        self.wait_for([1, 2])
        self.send(3)
        self.wait_for([1, 2, 3])
        self.page.wait_for("document.getElementById('live').textContent === 'live'")


class DirectoryTest(unittest.TestCase):
    """`--data_dir`: of a copy without a server, and of one whose server ends."""

    def test_directory_outlives_its_server(self):
        server = service.Server()
        self.addCleanup(server.kill)
        with lengthwise.Client(server.address) as client:
            experiment = client.submit(specification("copied", seeds=0, encodings="none"))
            service.Worker(server).run_all()
        with Web(["--data_dir", str(server.directory / "data")]) as web:
            # The feed that notices the end of the server.
            connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=DEADLINE)
            self.addCleanup(connection.close)
            cookie = {"Cookie": f"lengthwise_{web.port}={web.token}"}
            connection.request("GET", f"/experiments/{experiment.id}/events?after=0", headers=cookie)
            events = connection.getresponse()
            self.assertIn("copied-1", web.text("/"))
            server.kill()
            while web.ask("/")[0] != 200:
                self.assertEqual(events.status, 200)
            self.assertIn("1 done", web.text(f"/experiments/{experiment.id}"))

    def test_directory_without_a_worker_opens(self):
        server = service.Server()
        with lengthwise.Client(server.address) as client:
            client.submit(specification("queued"))
        server.kill()
        with Web(["--data_dir", str(server.directory / "data")]) as web:
            self.assertIn("4 queued", web.text("/experiments/queued-1"))
            self.assertIn("No worker has registered", web.text("/workers"))
            self.assertIn("has been evaluated in full yet", web.text("/experiments/queued-1/figures/accuracy_by_length.json"))

    def test_command_line_starts_it(self):
        server = service.Server()
        self.addCleanup(server.kill)
        with Web(["--server", server.address], [CLIENT, "web", "--listen", "127.0.0.1:0"]) as web:
            self.assertIn("There is no experiment yet", web.text("/"))
        self.assertEqual(web.process.returncode, 130)

    def test_ending_cuts_answers_off_quietly(self):
        server = service.Server()
        self.addCleanup(server.kill)
        errors = service.new_directory() / "errors"
        page = ["bash", "-c", f'exec "$@" 2>{errors}', "bash", sys.executable, "-m", "lengthwise", "web", "--listen", "127.0.0.1:0"]
        with Web(["--server", server.address], page) as web:
            # The server answers nothing, and the page has begun to wait for it when it answers the second request.
            os.kill(server._process.pid, signal.SIGSTOP)
            waiting = http.client.HTTPConnection("127.0.0.1", web.port, timeout=DEADLINE)
            self.addCleanup(waiting.close)
            waiting.request("GET", "/", headers={"Cookie": f"lengthwise_{web.port}={web.token}"})
            self.assertEqual(web.ask("/static/web.css")[0], 200)
        self.assertEqual(web.process.returncode, 130)
        self.assertEqual(errors.read_text(), "")

    def test_run_shows_itself_while_it_lasts(self):
        directory = service.new_directory()
        training = {"steps": 100_000_000, "batch_size": 4, "lengths": "1..4"}
        (directory / "long.json").write_text(json.dumps(specification("long", seeds=0, encodings="none", training=training)))
        with Web(["--data_dir", str(directory / "runs")], [CLIENT, "run", str(directory / "long.json"), "--web"]) as web:
            end = time.monotonic() + DEADLINE
            while "1 running" not in web.text("/experiments/long-1"):
                self.assertLess(time.monotonic(), end)
        with self.assertRaises(OSError):
            web.ask("/")

    def test_directory_that_is_not_there_is_told(self):
        command = [sys.executable, "-m", "lengthwise", "web", "--data_dir", "/nowhere"]
        done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=DEADLINE)
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no directory /nowhere", done.stderr)


class OneStream:
    """A server's log that ends at position 7 and then stays silent."""

    def __init__(self) -> None:
        self.requests: list = []
        self.followed = threading.Event()
        self.cancelled = threading.Event()

    def open(self, request, response):
        self.requests.append(request)
        return self

    def __iter__(self):
        if self.requests[-1].log_only:
            yield experiment_service_pb2.WatchExperimentResponse(next_position=7, caught_up=True)
            return
        self.followed.set()
        self.cancelled.wait(DEADLINE)

    def cancel(self) -> None:
        if self.followed.is_set():
            self.cancelled.set()

    def call(self, request, response, raw=False):
        if response is experiment_service_pb2.ListTrialsResponse:
            return response(trials=[experiment_service_pb2.Trial(name=f"{request.parent}/trials/first")])
        return response(name=request.name)


class BusyLog(OneStream):
    """Has a message for every position, all at once."""

    def __iter__(self):
        first = self.requests[-1]
        if first.log_only:
            yield from super().__iter__()
            return
        if len(self.requests) > 3:
            self.followed.set()
        for position in range(first.start_position + 1, first.start_position + 1001):
            yield experiment_service_pb2.WatchExperimentResponse(next_position=position)


class FeedsTest(unittest.TestCase):
    def test_many_messages_are_read_in_parts(self):
        log = BusyLog()

        async def look() -> None:
            feeds = Feeds(Source(lambda: log))
            await feeds.experiment("experiments/e-1").ready()
            await asyncio.to_thread(log.followed.wait, DEADLINE)
            feeds.stop()

        asyncio.run(look())
        starts = [one.start_position for one in log.requests if not one.log_only][:3]
        self.assertEqual(starts[0], 7)
        for before, after in zip(starts, starts[1:]):
            self.assertTrue(before < after < before + 1000, starts)

    def test_pages_share_one_stream(self):
        log = OneStream()

        async def look() -> set:
            feeds = Feeds(Source(lambda: log))
            found = set()
            for _ in range(20):
                feed = feeds.experiment("experiments/e-1")
                await feed.ready()
                found.add(feed)
            await asyncio.to_thread(log.followed.wait, DEADLINE)
            feeds.stop()
            return found

        self.assertEqual(len(asyncio.run(look())), 1)
        # The first request finds the end of the log, and the second follows it from there.
        asked = [(one.name, one.log_only, one.start_position) for one in log.requests]
        self.assertEqual(asked, [("experiments/e-1/trials/first", True, 0), ("experiments/e-1", False, 7)])
        self.assertTrue(log.cancelled.is_set())


class TrialsTest(unittest.TestCase):
    """The list of trials, of which the page reads again what has changed."""

    def test_changes_that_no_page_saw_are_shown(self):
        server = service.Server()
        self.addCleanup(server.kill)
        client = lengthwise.Client(server.address)
        self.addCleanup(client.close)
        experiment = client.submit(specification("unseen"))
        name = f"experiments/{experiment.id}"

        async def look(site: Site) -> collections.Counter:
            feed = site.feeds.experiment(name)
            await feed.ready()
            return collections.Counter(event_pb2.TrialState.Name(trial.state) for trial in await asyncio.to_thread(site.trials, feed))

        async def watch() -> None:
            site = Site(Source(lambda: Connection(resolve({"server": server.address}), timeout=DEADLINE)))
            try:
                trials = (await look(site))["QUEUED"]
                self.assertGreater(trials, 0)
                # Its feed ended meanwhile, as after a minute without a page.
                site.feeds._experiments.pop(name).stop()
                await asyncio.to_thread(experiment.cancel)
                self.assertEqual(await look(site), {"CANCELLED": trials})
                added = await asyncio.to_thread(lambda: experiment.extend(seeds=[77]))
                self.assertEqual(await look(site), {"CANCELLED": trials, "QUEUED": added})
            finally:
                site.stop()

        asyncio.run(watch())


class RefreshTest(unittest.TestCase):
    def test_refreshes_take_little_of_a_processor_together(self):
        # Twenty pages of one chart, and of twenty others.
        for addresses in (1, 20):
            self.assertLess(addresses * 0.01 / refresh_pause(seconds=0.01, pages=20, addresses=addresses), 0.0126)
        # A page alone has its chart again before a second is over.
        self.assertLess(refresh_pause(seconds=0.03, pages=1, addresses=1), 0.7)


class AnswerTest(unittest.TestCase):
    def test_page_gets_the_chart_that_was_begun_with_it(self):
        made: list = []

        def make() -> tuple:
            made.append(None)
            return "", b"%d" % len(made)

        async def look() -> list:
            site = Site(Source(OneStream))
            site._begin("chart", make)
            return [await site._answer("chart", make, refresh) for refresh in (False, False, True)]

        self.assertEqual([body for _, body in asyncio.run(look())], [b"1", b"1", b"2"])


class FeedTest(unittest.TestCase):
    """What a browser that reconnects is told."""

    def first(self, feed: Feed, after: int, count: int) -> list:
        async def read() -> list:
            messages = feed.messages(after)
            found: list = []
            while len(found) < count + 1:
                found += [f"{message}\n\n" for message in (await messages.__anext__()).split("\n\n")[:-1]]
            await messages.aclose()
            return found[1 : count + 1]  # after the one about retries

        return asyncio.run(read())

    def feed(self, positions: list) -> Feed:
        async def make() -> Feed:
            feed = Feed()
            feed.begin_at(positions[0] - 1)
            for position in positions:
                feed.publish(position, f"id: {position}\n\n")
            return feed

        return asyncio.run(make())

    def test_reconnect_gets_what_it_missed_once(self):
        self.assertEqual(self.first(self.feed([3, 5, 9]), 3, 2), ["id: 5\n\n", "id: 9\n\n"])

    def test_reconnect_after_too_long_asks_for_everything(self):
        (everything,) = self.first(self.feed([3, 5]), 1, 1)
        self.assertIn("id: 2\n", everything)
        self.assertIn('"kinds": ["evaluation", "log", "points", "state"], "trials": []', everything)
        many = self.feed(list(range(1, 2001)))
        self.assertIn('"trials": []', self.first(many, 10, 1)[0])


if __name__ == "__main__":
    unittest.main()
