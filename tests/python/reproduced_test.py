"""The numbers of experiments/REPRODUCED.md and its pages, computed again from their CSV files with pandas and SciPy."""
import json
import pathlib
import re
import sys
import unittest
import unittest.mock

import numpy
import pandas
import scipy.stats
import service
from lengthwise.plots.series_style import encoding_style

EXPERIMENTS = service.ROOT / "experiments"
REPRODUCED = EXPERIMENTS / "reproduced"
sys.path.insert(0, str(REPRODUCED))
import filed  # noqa: E402
import make_page  # noqa: E402
import positional_attention  # noqa: E402

# Encodings by what legends call them, apart from "Randomized".
ENCODINGS = {
    "None": "none", "nope": "none", "sin/cos": "sin_cos", "Relative": "relative", "RoPE": "rope", "ALiBi": "alibi",
    "Learned": "learned", "FIRE": "fire",
}  # fmt: skip


def table_of(page, first):
    """Rows of the page's table whose heads begin so, as lists of texts."""
    lines = (REPRODUCED / page).read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(first))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def numbers(text):
    return [float(one) for one in re.findall(r"[-+]?[\d.]+(?:e-?\d+)?", text.replace(",", ""))]


def answer_by_place(length):
    """Accuracy in bucket sort of the most frequent symbol of each place of the sorted list."""
    below = scipy.stats.binom.sf(numpy.arange(length)[:, None], length, numpy.linspace(0, 1, 6))
    return numpy.diff(below).max(axis=1).mean()


def write_csv(path, rows):
    pandas.DataFrame(rows).to_csv(path, index=False)


class UnfinishedPartTest(unittest.TestCase):
    def setUp(self):
        self.source = positional_attention.SOURCES[0]
        self.raw = filed.read_filed(self.source.file)
        self.results = service.new_directory()
        patch = unittest.mock.patch.object(filed, "RESULTS", self.results)
        patch.start()
        self.addCleanup(patch.stop)

    def site(self, seeds, ended):
        """A published folder of sorting on two graphs with so many seeds, of which some trials have ended."""
        site = service.new_directory()
        (site / "trials").mkdir()
        (site / "specification.json").write_text('{"name": "table1_gcn_others"}')
        trials, scores = [], []
        for i in range(2 * seeds):
            network = {"name": "graph_network", "parameters": {"architecture": "convolution", "graph": "complete"}}
            if i >= seeds:
                network["parameters"] |= {"graph": "star", "self_connections": False}
            name = f"sorting-gcn_{network['parameters']['graph']}-seed{i % seeds}"
            trials.append(
                {
                    "trial": f"experiments/table1_gcn_others-1/trials/{name}", "state": "SUCCEEDED" if i < ended else "RUNNING",
                    "training_seconds": 60.0, "start_time": "2026-11-30T01:00:00Z", "end_time": "2026-11-30T01:01:00Z",
                    "instruction_set": "AVX2", "source_revision": "50b2b506", "steps": 60030, "threads": 1,
                }
            )  # fmt: skip
            (site / f"trials/{name}.json").write_text(json.dumps({"tasks": [{"name": "sorting"}], "networks": [network]}))
            scores += [
                {"trial": trials[-1]["trial"], "final": "true", "length": scale, "loss": 0.2 * scale**2} for scale in (1, 2, 3, 4, 5, 10)
            ]
        write_csv(site / "trials.csv", trials)
        write_csv(site / "length_accuracies.csv", scores)
        return site

    def test_only_ended_trials_are_filed_and_the_rest_is_named(self):
        make_page.collect(self.site(10, ended=3), "a machine")
        kept = pandas.read_csv(self.results / "positional_attention_table_1_others.csv")
        self.assertEqual(kept["trial"].nunique(), 3)
        text = positional_attention.others_text(positional_attention.cells_of(self.source, self.raw))
        self.assertIn("20 trials, 3 of them ended; the rest would take about 2.7 hours", text)
        self.assertIn("they would be", text)
        make_page.collect(self.site(10, ended=20), "a machine")
        self.assertEqual(len(pandas.read_csv(self.results / "positional_attention_table_1_others.csv")), 120)
        cells = positional_attention.cells_of(self.source, self.raw)
        text = positional_attention.others_text(cells)
        self.assertIn("GCN on a complete graph and with GCN on a star graph was trained again, 10 runs each", text)
        self.assertNotIn("missing.sh", text)
        self.assertIn("On other vectors (12 measured, the others estimated), ", positional_attention.distances(cells))


class ReproducedPagesTest(unittest.TestCase):
    def test_cells_are_the_medians_of_their_runs(self):
        draws = pandas.read_csv(REPRODUCED / "results/test_draws.csv").set_index(["task", "scale"])
        counted = {}
        for page in ("positional_attention_table_1", "positional_attention_figure_4_2", "positional_attention_figure_3_5000"):
            published = json.loads((EXPERIMENTS / f"published/{page}.json").read_text())
            rows = {row["label"]: row for row in published["rows"]}
            columns = {column["label"]: column for column in published["columns"]}
            printed = {(cell["row"], cell["column"]): cell for cell in published["cells"]}
            runs = pandas.read_csv(REPRODUCED / f"results/{page}.csv")
            networks = runs["network"].map(json.loads)
            for label, scale, print_, ours, difference, distance, *rest in table_of(f"{page}.md", "| | scale | printed"):
                row, column = rows[label], columns[scale]
                chosen = networks.map(lambda one, wanted=row["network"]: wanted.items() <= one.items())
                losses = runs[chosen & (runs["task"] == row["task"]) & (runs["scale"] == column["length"])]["loss"]
                self.assertEqual(rest[-1], str(len(losses)))
                expected = [losses.median(), *numpy.percentile(losses, [10, 90])]
                numpy.testing.assert_allclose(numbers(ours), expected, rtol=6e-3, err_msg=f"{label}, {scale}")
                cell = printed[row["key"], column["key"]]
                numpy.testing.assert_allclose(numbers(print_)[0], cell["value"], rtol=6e-3)
                self.assertEqual(difference, f"{100 * (losses.median() / cell['value'] - 1):+.0f} %")
                logarithm = numpy.log(losses.median() / cell["value"])
                self.assertEqual(logarithm > 0, float(distance) >= 0)
                if len(rest) == 4:
                    draw = draws.loc[row["task"], column["length"]]
                    others = losses.median() * draw["expected"] / draw["ours"]
                    if not rest[0].startswith("≈"):
                        again = pandas.read_csv(REPRODUCED / f"results/{page}_others.csv")
                        chosen = again["network"].map(lambda one, wanted=row["network"]: wanted.items() <= json.loads(one).items())
                        again = again[chosen & (again["task"] == row["task"]) & (again["scale"] == column["length"])]
                        others = again["loss"].median()
                    numpy.testing.assert_allclose(numbers(rest[0])[0], others, rtol=6e-3)
                    self.assertEqual(rest[1], f"{100 * (others / cell['value'] - 1):+.0f} %")
                kind = "Figures" if "figure" in page else "stars" if "star" in label else "complete graphs"
                counted.setdefault(kind, []).append(abs(float(distance)))
        text = (REPRODUCED.parents[1] / "README.md").read_text()
        for kind, distances in counted.items():
            of_table = [line for line in text.splitlines() if line.startswith(("| Figures 3 and 4,", "| Table 1,"))]
            (row,) = [line for line in of_table if kind in line]
            self.assertEqual(numbers(row)[-4], len(distances))
            self.assertEqual(numbers(row)[-1], max(distances))

    def test_ten_seeds_are_means_deviations_and_shares_of_their_runs(self):
        runs = pandas.read_csv(REPRODUCED / "results/ten_seeds.csv")
        finals = runs[runs["final"]].groupby(["task", "encoding", "weight_seed", "seen"], sort=False)["accuracy"].mean()
        scores = 100 * finals.unstack()
        groups = list(scores.groupby(level=["task", "encoding"], sort=False))
        rows = table_of("ten_seeds.md", "| task (chance)")
        self.assertEqual(len(rows), len(groups))
        for (_, _, seeds, seen, unseen, above), (_, own) in zip(rows, groups, strict=True):
            self.assertEqual(seeds, str(len(own)))
            for text, side in ((seen, True), (unseen, False)):
                deviation = f" ± {own[side].std():.1f}" if len(own) > 1 else ""
                self.assertEqual(text, f"{own[side].mean():.1f}{deviation}")
            passed = int((own[False] > 90).sum())
            low, high = scipy.stats.binomtest(passed, len(own)).proportion_ci(method="wilson")
            self.assertEqual(above, f"{passed} of {len(own)} ({100 * low:.0f} to {100 * high:.0f} %)")
        self.assertIn(f"{len(scores)} of 160 trials have ended", (REPRODUCED / "ten_seeds.md").read_text())
        self.assertIn(f"{len(scores)} of 160 trials", (REPRODUCED / "ten_seeds.svg").read_text())

    def test_short_table_is_of_its_trials(self):
        published = json.loads((EXPERIMENTS / "published/randomized_pe_table_1.json").read_text())
        columns = {column["label"]: column for column in published["columns"]}
        printed = {(cell["row"], cell["column"]): cell["value"] for cell in published["cells"]}
        runs = pandas.read_csv(REPRODUCED / "results/randomized_pe_table_1_short.csv")
        encodings = runs["encoding"].map(json.loads)
        page = (REPRODUCED / "randomized_pe_table_1_short.md").read_text()
        header = next(line for line in page.splitlines() if line.startswith("| accuracy on"))
        shown = [cell.strip() for cell in header.strip("|").split("|")][2:]
        unlearned = 0
        # By encoding: by task that is learned, the accuracy on unseen lengths.
        learned = {label: {} for label in shown}
        for row in published["rows"]:
            _, chance, *cells = next(one for one in table_of("randomized_pe_table_1_short.md", "| accuracy on") if one[0] == row["label"])
            guess, *place = numbers(chance)
            self.assertEqual(guess, row["random_accuracy_percent"])
            lengths = sorted(set(runs["length"]))
            by_place = [100 * answer_by_place(length) for length in lengths if length > 40]
            self.assertEqual(place, [round(numpy.mean(by_place))] if row["key"] == "bucket_sort" else [])
            by_label = {}
            for label in shown:
                wanted = {"randomized": False, **columns[label]["encoding"]}
                chosen = encodings.map(lambda one, wanted=wanted: wanted.items() <= one.items())
                by_label[label] = runs[chosen & (runs["task"] == row["key"])].set_index("length")["accuracy"].sort_index()
            for label, cell in zip(shown, cells, strict=True):
                own = by_label[label]
                seen, unseen = own[own.index <= 40], own[own.index > 40]
                star = "" if seen.mean() >= 0.9 else "*"
                unlearned += bool(star)
                if not star:
                    learned[label][row["key"]] = 100 * unseen.mean()
                same = any(other is not own and (other[other.index > 40] == unseen).all() for other in by_label.values())
                published_value = printed[row["key"], columns[label]["key"]]
                expected = f"{published_value:.1f} / {100 * unseen.mean():.1f}{star}{'†' if same else ''}"
                self.assertEqual(cell, expected, f"{row['label']}, {label}")
        self.assertIn(f"{unlearned} of the {len(published['rows']) * len(shown)} models are below 90 % on the seen lengths", self.readme())
        self.assertEqual([len(learned[label]) for label in shown], [2, 3, 1, 3])
        self.assertEqual(shown, ["sin/cos", "Relative", "Randomized sin/cos", "Randomized Relative"])
        ahead = [learned["Randomized Relative"][task] - score for task, score in learned["Relative"].items()]
        self.assertIn(f"the randomized ones are ahead by {min(ahead):.0f} to {max(ahead):.0f} points on unseen lengths", self.readme())
        self.assertIn("Plain sin/cos reaches it in two tasks, randomized sin/cos in one", self.readme())
        self.assertIn(f"It has {min(by_place):.0f} to {max(by_place):.0f} % by length", page)
        quickstart = numpy.mean([answer_by_place(length) for length in range(25, 61, 5)])
        self.assertIn(f"of each place in sorted lists gives {100 * quickstart:.0f} % on the unseen lengths", self.readme())
        inputs = 128 * sum(length > 40 for length in set(runs["length"]))
        self.assertIn(f"Ours are of {inputs:,} inputs", page)

    def test_draws_and_sizes_are_those_of_their_tables(self):
        page = "positional_attention_table_1.md"
        draws = pandas.read_csv(REPRODUCED / "results/test_draws.csv").sort_values(["task", "scale"])
        for title, *values in table_of(page, "| error of the best"):
            task = "sorting" if title.startswith("sorting") else "cumulative_sum"
            own = draws[draws["task"] == task]["ours" if "our" in title else "expected"]
            numpy.testing.assert_allclose([float(value) for value in values], own, rtol=6e-4)
        sizes = pandas.read_csv(REPRODUCED / "results/gcn_sizes.csv")
        sizes = sizes[sizes["final"]].sort_values(["length", "weight_seed"])
        networks = {"d_model 32": "gcn_d32", "2 blocks": "gcn_b2", "8 blocks": "gcn_b8", "d_model 128": "gcn_d128"}
        rows = {title: values for title, *values in table_of(page, "| | c = 1 | c = 2")}
        for part, network in networks.items():
            (values,) = [values for title, values in rows.items() if part in title]
            found = [numbers(value) for value in values]
            expected = sizes[sizes["network"] == network]["loss"].to_numpy().reshape(-1, 2)
            numpy.testing.assert_allclose(found, expected, rtol=6e-3, err_msg=network)

    def test_a_common_answer_without_training_is_near_the_print(self):
        draws = pandas.read_csv(REPRODUCED / "results/test_draws.csv").set_index(["task", "scale"])
        runs = pandas.read_csv(REPRODUCED / "results/positional_attention_table_1.csv")
        networks = runs["network"].map(json.loads)
        published = json.loads((EXPERIMENTS / "published/positional_attention_table_1.json").read_text())
        rows, columns = ({one["key"]: one for one in published[axis]} for axis in ("rows", "columns"))
        near, apart = [], []
        for cell in published["cells"]:
            row, scale, value = rows[cell["row"]], columns[cell["column"]]["length"], cell["value"]
            chosen = networks.map(lambda one, wanted=row["network"]: wanted.items() <= one.items())
            losses = runs[chosen & (runs["task"] == row["task"]) & (runs["scale"] == scale)]["loss"]
            if losses.empty:
                continue
            draw = draws.loc[row["task"], scale]
            rounding = 10 ** (numpy.floor(numpy.log10(value)) - 1) / value / 12**0.5
            # An answer without training has no spread over runs.
            error = (rounding**2 + 2 * draw["relative_error"] ** 2) ** 0.5
            near.append(abs(numpy.log(draw["ours"] / value)) <= 2 * error)
            ours = 1.2533 * numpy.log(losses).std() / len(losses) ** 0.5
            again = (ours**2 + rounding**2 + (1 + 1.2533**2 / 10) * draw["relative_error"] ** 2) ** 0.5
            apart.append(abs(numpy.log(losses.median() / value)) / again)
        text = " ".join((REPRODUCED / "positional_attention_table_1.md").read_text().split())
        self.assertIn(f"is within two of the print in {sum(near)} of {len(near)} cells", text)
        within = [sum(numpy.array(apart) <= most) for most in (1, 2)]
        told = f"{within[0]} of {len(apart)} are within one standard error and {within[1]} within two"
        self.assertIn(f"If it drew vectors for each run, as its code does for other figures, {told}", self.readme())
        self.assertIn(f"Of the differences on our vectors, {told}", text)
        self.assertIn(f"of the print in {sum(near)} of {len(near)} cells", " ".join((EXPERIMENTS / "REPRODUCED.md").read_text().split()))
        self.assertIn(f"is within two standard errors of the print in {sum(near)} of {len(near)} cells", self.readme())

    def test_losses_beside_the_released_codes_are_counted(self):
        page = EXPERIMENTS / "randomized_positional_encodings/README.md"
        beyond, count, near = [], 0, numpy.zeros(2)
        for line in page.read_text().split("| encoding | step 50 |")[1].splitlines()[2:]:
            if not line.startswith("|"):
                break
            encoding, *cells = [cell.strip() for cell in line.strip("|").split("|")]
            for step, cell in zip((50, 100, 200, 300, 500, 700, 1000), cells, strict=True):
                code, mean, deviation = map(float, re.split(" / | ± ", cell))
                count += 1
                near += abs(code - mean) <= deviation + numpy.array([-0.0015, 0.0015])
                # Both are printed to three digits.
                if abs(code - mean) > 2 * deviation + 1e-9:
                    beyond.append((encoding, step))
        self.assertRegex(self.readme(), rf"Of these {count} losses, \d+ lie within one standard deviation between 10 seeds, and")
        sentence = self.readme().partition("Of these ")[2].partition(";")[0]
        # The digits that are not printed decide about some.
        self.assertTrue(near[0] <= numbers(sentence)[1] <= near[1], sentence)
        self.assertIn(f"and {count - len(beyond)} within two", sentence)
        others = ", ".join(f"{encoding} at step {step}" for encoding, step in beyond)
        self.assertIn(f"{sentence}; the others: {others}. ", " ".join(page.read_text().split()))

    def test_choices_of_positions_are_means_of_their_runs(self):
        runs = pandas.read_csv(EXPERIMENTS / "positions/results/positions_quick.csv")
        names = {"randomized": "subset", "": "as they are"}
        choice = runs["encoding"].str.replace("_?(sin_cos|rope|relative)$", "", regex=True).map(lambda one: names.get(one, one))
        means = 100 * runs[~runs["seen"]].groupby([choice, "task"])["accuracy"].mean().unstack()
        page = (EXPERIMENTS / "positions/README.md").read_text()
        tasks = ["even_pairs", "reverse_string", "missing_duplicate_string", "bucket_sort"]
        for name, own in means[tasks].iterrows():
            shown = name if name == "as they are" else f"`{name}` (randomized)" if name == "subset" else f"`{name}`"
            self.assertIn(f"| {shown} | {' | '.join(f'{one:.1f}' for one in [*own, own.mean()])} |", page)
        seeds = 100 * runs[~runs["seen"]].groupby([choice, runs["trial"].str[-5:]])["accuracy"].mean().unstack()
        apart = seeds.loc["subset"] - seeds.loc["uniform_reals"]
        self.assertGreater(apart.min(), 0)
        self.assertIn(f"ahead of `uniform_reals` by {apart.mean():.1f} points in the mean, and with each of the three seeds", page)

    def test_remarks_quote_their_runs(self):
        page = " ".join((REPRODUCED / "positional_attention_table_1.md").read_text().split())
        short = pandas.read_csv(REPRODUCED / "results/gat_short.csv").set_index(["network", "length"])["loss"]
        for network, scale, told in (
            ("gat_star", 1, "is {:.3f} at c = 1 (printed: 3.8), "), ("gat_star", 2, "), {:.1f} at c = 2 (20), "),
            ("gat_star", 3, " {:.0f} at c = 3 (41), "), ("gat_star", 4, "), {:.0f} at c = 4 (75), "),
            ("gat_star", 5, "), {:.0f} at c = 5 (120) and "), ("gat_star", 10, " and {:.0f} at c = 10 (500)."),
            ("gat_complete", 1, "is {:.2f} at c = 1 (3.7), "), ("gat_complete", 5, "), {:.0f} at c = 5 (120) and "),
            ("gat_complete", 10, " and {:.0f} at c = 10 (540)."),
        ):  # fmt: skip
            self.assertIn(told.format(short[network, scale]), page)
        runs = pandas.read_csv(REPRODUCED / "results/positional_attention_table_1.csv")
        star = runs[runs["network"].str.contains('"graph": "star"') & ~runs["network"].str.contains('"self_connections": false')]
        near, far = (star[star["scale"] == scale]["loss"] for scale in (1, 10))
        told = f"{len(near)} such runs of cumulative sums had errors of {near.min():.3g} to {near.max():.3g} at c = 1 (4), "
        self.assertIn(told, page)
        self.assertIn(f" and {far.min():,.0f} to {far.max():,.0f} at c = 10 (460); in brackets, the print.", page)
        rows = table_of("positional_attention_table_1.md", "| | scale | printed")
        for place, told in ((3, "The mean distance from the print, "), (6, "is then ")):
            apart = [abs(numbers(row[place])[0] / numbers(row[2])[0] - 1) for row in rows]
            self.assertAlmostEqual(100 * numpy.mean(apart), float(page.split(told)[1].split(" ")[0]), delta=0.1)
        graphs = {}
        for label, scale, printed, *_ in rows:
            graphs.setdefault((label.split(",")[0], scale), []).append(float(printed))
        farthest = max(abs(star / complete - 1) for complete, star in graphs.values())
        self.assertIn(f"on stars are within {numpy.ceil(100 * farthest):.0f} % of those on complete graphs", page)

    def test_papers_repeats_are_compared_with_the_rule(self):
        medians, errors = [], []
        for figure in ("5", "3_30000", "4_8", "9"):
            published = json.loads((EXPERIMENTS / f"published/positional_attention_figure_{figure}.json").read_text())
            (cell,) = [one for one in published["cells"] if (one["row"], one["column"]) == ("cumulative_sum__positional", "c3")]
            medians.append(cell["value"])
            deviation = (numpy.log(cell["p90"]) - numpy.log(cell["p10"])) / (2 * scipy.stats.norm.ppf(0.9))
            errors.append((numpy.pi / 2) ** 0.5 * deviation / 10**0.5)
        told = (
            f"The largest is {max(medians) / min(medians):.1f} times the smallest; the logarithms have a standard deviation of"
            f" {numpy.log(medians).std(ddof=1):.2f}. Our rule for standard errors, which has the spread over runs alone, expects"
            f" {min(errors):.2f} to {max(errors):.2f} for one of them, and {numpy.mean(numpy.square(errors)) ** 0.5:.2f} in the root mean square."
        )
        for page in ("positional_attention_figure_3_5000.md", "positional_attention_figure_4_2.md"):
            self.assertIn(told, " ".join((REPRODUCED / page).read_text().split()))
        rows = [row for row in table_of("positional_attention_figure_3_5000.md", "| | scale | printed") if row[1] == "c = 3"]
        ratios = [numbers(row[3])[0] / numbers(row[2])[0] for row in rows]
        told = f"our medians at c = 3 are {min(ratios):.2f} to {max(ratios):.2f} times the print"
        self.assertIn(told, (REPRODUCED / "positional_attention_figure_3_5000.md").read_text())

    def test_ten_seeds_says_how_the_count_moves_and_what_was_trained_elsewhere(self):
        page = " ".join((REPRODUCED / "ten_seeds.md").read_text().split())
        runs = pandas.read_csv(REPRODUCED / "results/ten_seeds.csv")
        runs = runs[~runs["final"] & ~runs["seen"] & (runs["task"] == "even_pairs")]
        for encoding, label in (("randomized_sin_cos", "of the ten seeds of randomized sin/cos"), ("randomized_relative", "of those of")):
            of_seed = runs[runs["encoding"] == encoding].groupby(["step", "weight_seed"])["accuracy"].mean()
            passed = (of_seed > 0.9).groupby("step").sum().tolist()
            self.assertIn(f"{', '.join(map(str, passed[-6:-1]))} and {passed[-1]} {label}", page)
        benchmarks = " ".join((service.ROOT / "benchmarks/README.md").read_text().split())
        means = numpy.array(numbers(benchmarks.partition("The ten means, sorted: ")[2].partition(" and ")[0]))
        self.assertEqual(len(means), 10)
        self.assertEqual(f"{means.mean():.1f}", "96.5")
        self.assertIn(f"96.5 ± {means.std(ddof=1):.1f} % on unseen lengths, the lowest {min(means)} %", page)
        passed = int((means > 90).sum())
        low, high = scipy.stats.binomtest(passed, len(means)).proportion_ci(method="wilson")
        self.assertIn(f"{passed} of {len(means)} are above 90 % ({100 * low:.0f} to {100 * high:.0f} %)", page)

    def readme(self):
        return " ".join(pathlib.Path("README.md").read_text().split())


class PicturesTest(unittest.TestCase):
    def test_an_encoding_has_one_colour_in_all_pictures(self):
        found = set()
        for path in sorted([*(service.ROOT / "docs").glob("*.svg"), *EXPERIMENTS.rglob("*.svg")]):
            for legend in path.read_text().split('id="legend')[1:]:
                color = ""
                for stroke, label in re.findall(r"stroke: (#\w+)|<text[^>]*>([^<]+)</text>", legend):
                    color = stroke or color
                    encoding = ENCODINGS.get(label.removeprefix("Randomized ").replace(" / ", "/"))
                    if encoding is not None:
                        self.assertEqual(color, encoding_style(encoding).hex_color.lower(), f"{label} in {path}")
                        found.add(encoding)
        self.assertGreaterEqual(len(found), 6, "legends were read")


if __name__ == "__main__":
    unittest.main()
