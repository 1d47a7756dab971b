"""The numbers of experiments/REPRODUCED.md and its pages, computed again from their CSV files with pandas and SciPy."""
import json
import pathlib
import re
import unittest

import numpy
import pandas
import scipy.stats

EXPERIMENTS = pathlib.Path("experiments")
REPRODUCED = EXPERIMENTS / "reproduced"


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


class ReproducedPagesTest(unittest.TestCase):
    def test_cells_are_the_medians_of_their_runs(self):
        draws = pandas.read_csv(REPRODUCED / "results/test_draws.csv").set_index(["task", "scale"])
        counted = []
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
                    numpy.testing.assert_allclose(numbers(rest[0])[0], others, rtol=6e-3)
                    self.assertEqual(rest[1], f"{100 * (others / cell['value'] - 1):+.0f} %")
                counted.append(abs(float(distance)))
        readme = " ".join(pathlib.Path("README.md").read_text().split())
        self.assertIn(f"Of the {len(counted)} differences between print and median", readme)
        self.assertIn(f"the largest is {max(counted):.1f}", readme)

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


if __name__ == "__main__":
    unittest.main()
