"""Comparisons with published tables: cells, layout, and how protocols differ."""
import dataclasses
import io
import json
import math
import unittest

import served
from comparison_fixture import SPECIFICATIONS, ResolvedTest, component, table_of
from lengthwise import comparison, experiment_difference, protocol, published
from lengthwise import comparison_display as display
from lengthwise._proto import event_pb2, experiment_service_pb2, specification_pb2
from lengthwise.comparison import Comparison, ComparisonCell, Measurement, SeedStatistic, aggregate
from lengthwise.errors import UsageError
from lengthwise.published import PublishedColumn, PublishedRow, PublishedValue, Quantity, Statistic
from lengthwise.rendering import Palette


class AggregationTest(unittest.TestCase):
    def test_empty_group_has_no_value(self):
        for statistic in Statistic:
            self.assertIsNone(aggregate([], statistic))
            self.assertIsNone(aggregate([SeedStatistic()], statistic))

    def test_maximum_is_over_seeds_and_rates(self):
        found = aggregate([SeedStatistic(2, 60, 14, 70), SeedStatistic(2, 59.75, 56, 99.5)], Statistic.MAXIMUM)
        self.assertEqual(found, Measurement(99.5, None, 4))

    def test_mean_is_that_of_the_best_rate(self):
        found = aggregate([SeedStatistic(2, 60, 55, 99), SeedStatistic(3, 80, 10, 90)], Statistic.MEAN_AT_BEST_RATE)
        self.assertEqual(found, Measurement(80, 10, 3))

    def test_one_seed_has_no_deviation(self):
        found = aggregate([SeedStatistic(1, 42, 0, 42)], Statistic.MEAN_AT_BEST_RATE)
        self.assertEqual(found, Measurement(42, None, 1))

    def test_mean_of_all_pools_the_trials(self):
        # 1, 3 and 5, 7, 9 by hand: mean 5, squares 16 + 4 + 0 + 4 + 16 = 40 over 4.
        groups = [SeedStatistic(2, 2, math.sqrt(2), 3), SeedStatistic(), SeedStatistic(3, 7, 2, 9)]
        found = aggregate(groups, Statistic.MEAN_OF_ALL)
        self.assertEqual((found.value, found.trials), (5, 5))
        self.assertAlmostEqual(found.deviation, math.sqrt(10), 12)

    def test_median_is_of_the_lowest_configuration(self):
        found = aggregate([SeedStatistic(10, 0.5), SeedStatistic(3, 0.25)], Statistic.MEDIAN)
        self.assertEqual(found, Measurement(0.25, None, 3))


class SelectionTest(unittest.TestCase):
    # The first is better on seen lengths, the second on unseen ones.
    GROUPS = (
        SeedStatistic(2, 40, 10, 50, score=0.9, best_score=0.95, best=45),
        SeedStatistic(2, 60, 10, 70, score=0.5, best_score=0.6, best=65),
    )

    def test_seen_lengths_choose_on_request(self):
        for statistic, paper, seen in (
            (Statistic.MAXIMUM, 70, 45), (Statistic.MEAN_AT_BEST_RATE, 60, 40), (Statistic.MEDIAN, 40, 40),
        ):  # fmt: skip
            self.assertEqual(aggregate(self.GROUPS, statistic).value, paper)
            self.assertEqual(aggregate(self.GROUPS, statistic, "unseen").value, paper)
            self.assertEqual(aggregate(self.GROUPS, statistic, "seen").value, seen)

    def test_without_scores_of_seen_lengths_nothing_is_chosen(self):
        unseen_alone = [SeedStatistic(2, 40, 10, 50), SeedStatistic(2, 60, 10, 70)]
        for statistic in (Statistic.MAXIMUM, Statistic.MEAN_AT_BEST_RATE, Statistic.MEDIAN):
            with self.assertRaisesRegex(UsageError, "evaluation.validation"):
                aggregate(unseen_alone, statistic, "seen")
        self.assertEqual(aggregate(unseen_alone, Statistic.MEAN_OF_ALL, "seen").value, 50)
        # Several seeds of one rate.
        self.assertEqual(aggregate(unseen_alone[:1], Statistic.MEAN_AT_BEST_RATE, "seen").value, 40)
        with self.assertRaises(UsageError):
            aggregate(unseen_alone[:1], Statistic.MAXIMUM, "seen")
        # There is no choice.
        self.assertEqual(aggregate([SeedStatistic(1, 40, 0, 40)], Statistic.MAXIMUM, "seen").value, 40)

    def test_chosen_trial_may_lack_the_tables_length(self):
        self.assertIsNone(aggregate([SeedStatistic(2, 40, 10, 50, 0.9, 0.95)], Statistic.MAXIMUM, "seen"))

    def test_lower_loss_and_then_lower_rate_decide_between_equal_scores(self):
        def configuration(mean, loss, rate):
            return SeedStatistic(
                2, mean, 0, mean, score=1, best_score=1, best=mean, loss=loss, best_loss=loss, rate=rate
            )

        statistics = (Statistic.MAXIMUM, Statistic.MEAN_AT_BEST_RATE, Statistic.MEDIAN)
        for losses, chosen in (((0.2, 0.1, 0.3), 60), ((0.1, 0.1, 0.1), 80), ((math.nan, 0.1, math.nan), 60)):
            rates = zip((40, 60, 80), losses, (0.01, 0.001, 0.0001))
            of_rates = [configuration(*one) for one in rates]
            for statistic in statistics:
                self.assertEqual(aggregate(of_rates, statistic, "seen").value, chosen)


class CellsTest(unittest.TestCase):
    """Two tasks and two encodings."""

    def table(
        self,
        quantity=Quantity.UNSEEN_ACCURACY,
        statistics=(Statistic.MAXIMUM, Statistic.MAXIMUM),
        rows=None,
        lengths=(0, 0),
        cells=None,
    ):
        columns = [
            PublishedColumn("none", "None", statistics[0], encodings=["none"], length=lengths[0]),
            PublishedColumn("rand_rope", "Randomized RoPE", statistics[1], encodings=["rope"],
                            parameters={"randomized": True}, length=lengths[1]),
        ]  # fmt: skip
        rows = rows or [PublishedRow("even_pairs", "Even Pairs", "R"), PublishedRow("bucket_sort", "Bucket Sort", "CS")]
        printed = {(0, 0): 50.4, (0, 1): 100.0, (1, 0): 23.7} if cells is None else cells
        return table_of(rows, columns, {place: PublishedValue(value) for place, value in printed.items()}, quantity)

    def setUp(self):
        # Labels differ from names, as users may choose them.
        self.specification = specification_pb2.ExperimentSpecification(
            tasks=[component(name, "my_" + name) for name in ("even_pairs", "bucket_sort", "odds_first")],
            networks=[component("encoder", "net")],
            encodings=[
                component("none", "none", randomized=False),
                component("rope", "plain", randomized=False),
                component("rope", "random", randomized=True),
            ],
            learning_rates=[0.001],
        )
        self.specification.training.steps = 1000
        self.paper = specification_pb2.ExperimentSpecification()
        self.paper.CopyFrom(self.specification)
        self.paper.training.steps = 2_000_000
        self.summary = experiment_service_pb2.SummarizeExperimentResponse()

    def add(self, task, encoding, trials, mean, maximum):
        """Trials of one learning rate; accuracies are 0 to 1."""
        cell = self.summary.cells.add(task="my_" + task, network="net", encoding=encoding)
        cell.trials.succeeded = trials
        cell.unseen_accuracy.trials = trials
        cell.unseen_accuracy.mean = mean
        cell.unseen_accuracy.max = maximum
        return cell

    def beside(self, table, at_lengths=None):
        return comparison.compare(table, self.specification, self.paper, self.summary, at_lengths)

    def test_best_trial_is_compared_with_the_paper(self):
        self.add("even_pairs", "none", 1, 0.512, 0.512)
        self.add("even_pairs", "none", 1, 0.503, 0.503)
        self.add("even_pairs", "random", 1, 0.878, 0.878)
        none, random = self.beside(self.table()).cells[0]
        self.assertAlmostEqual(none.measured.value, 51.2)
        self.assertEqual(none.measured.trials, 2)
        self.assertEqual(none.difference(Quantity.UNSEEN_ACCURACY), 0.8)
        self.assertEqual(random.difference(Quantity.UNSEEN_ACCURACY), -12.2)
        self.assertFalse(none.best_measured)
        self.assertTrue(random.best_measured)
        self.assertTrue(random.best_published)

    def test_losses_and_rates_of_the_summary_decide_between_equal_scores(self):
        for rate, unseen, loss in ((0.01, 0.4, 0.1), (0.001, 0.6, 0.1), (0.0001, 0.8, 0.2)):
            cell = self.add("even_pairs", "none", 2, unseen, 0.9)
            cell.learning_rate, cell.best_unseen_accuracy = rate, unseen
            cell.selection.trials, cell.selection.mean, cell.selection.max = 2, 1, 1
            cell.selection_loss = cell.best_loss = loss
        for statistic in (Statistic.MEAN_AT_BEST_RATE, Statistic.MAXIMUM):
            table = self.table(statistics=(statistic, statistic))
            seen = comparison.compare(table, self.specification, self.paper, self.summary, select="seen").cells[0][0]
            self.assertAlmostEqual(seen.measured.value, 60)

    def test_column_takes_the_accuracy_at_its_length(self):
        self.add("even_pairs", "none", 3, 0.6, 0.7)
        self.add("bucket_sort", "none", 2, 0.6, 0.7)
        found = self.beside(self.table(lengths=(100, 0)), {(0, 100): SeedStatistic(trials=3, max=0.25)})
        chosen = "; the trial that is best at that length, or the trial that is best on unseen lengths, as in the paper; "
        self.assertIn(chosen, " ".join(display.remarks(found, "*", False)))
        self.assertEqual(found.cells[0][0].measured.value, 25)
        self.assertIsNone(found.cells[1][0].measured, "not evaluated there")
        self.assertEqual([row[0].finished for row in found.cells], [True, True])
        self.assertEqual(found.without_value, 2)

    def test_unrun_cells_are_empty_and_counted(self):
        self.add("even_pairs", "random", 1, 1, 1)
        found = self.beside(self.table())
        self.assertEqual((found.cells_run, found.cell_count), (1, 4))
        self.assertIsNone(found.cells[1][0].measured)
        self.assertIsNone(found.cells[1][0].difference(Quantity.UNSEEN_ACCURACY))
        self.assertEqual([found.row_was_run(row) for row in (0, 1)], [True, False])
        self.assertEqual([found.column_was_run(column) for column in (0, 1)], [False, True])
        self.assertFalse(found.cells[0][1].best_measured, "one number alone is not the best of anything")

    def test_unpublished_cell_has_no_difference(self):
        self.add("bucket_sort", "random", 1, 0.9, 0.9)
        found = self.beside(self.table())
        self.assertIsNotNone(found.cells[1][1].measured)
        self.assertIsNone(found.cells[1][1].difference(Quantity.UNSEEN_ACCURACY))

    def test_equal_printed_values_are_best_together(self):
        self.add("even_pairs", "none", 1, 0.99981, 0.99981)
        self.add("even_pairs", "random", 1, 0.9999, 0.9999)
        self.assertEqual([cell.best_measured for cell in self.beside(self.table()).cells[0]], [True, True])

    def test_counts_omissions(self):
        waiting = self.add("even_pairs", "none", 0, 0, 0)
        waiting.trials.failed, waiting.trials.queued = 2, 1
        self.add("even_pairs", "plain", 1, 1, 1)
        self.add("odds_first", "none", 1, 1, 1)
        self.add("bucket_sort", "none", 0, 0, 0).trials.succeeded = 4
        self.add("even_pairs", "random", 5, 0.5, 0.6)
        found = self.beside(self.table())
        self.assertEqual((found.unfinished, found.elsewhere, found.without_value, found.counted), (3, 2, 4, 5))
        self.assertIsNone(found.cells[0][0].measured)

    def test_rows_without_trials_are_told_from_rows_without_a_value(self):
        self.add("even_pairs", "none", 0, 0, 0).trials.failed = 1
        self.add("bucket_sort", "random", 1, 1, 1)
        first = display.remarks(self.beside(self.table()), "*", False)[0]
        self.assertEqual(
            first,
            "1 of 4 cells has a value; rows without a value: Even Pairs; columns without a value: None (--whole_table shows "
            "them).",
        )
        self.summary.Clear()
        self.add("bucket_sort", "random", 1, 1, 1)
        first = display.remarks(self.beside(self.table()), "*", False)[0]
        self.assertIn("; rows without trials: Even Pairs; columns without trials: None ", first)

    def test_left_out_trials_belong_to_no_cell(self):
        # The table has this task, and this encoding for other ones.
        self.add("even_pairs", "plain", 1, 1, 1)
        self.assertIn("Left out: 1 trial of no cell of the table.", display.remarks(self.beside(self.table()), "*", False))

    def left_out(self, **more):
        self.add("even_pairs", "none", 0, 0, 0).trials.succeeded = 2
        table = self.table(**more)
        (sentence,) = [one for one in display.remarks(self.beside(table), "*", False) if one.startswith("Left out: ")]
        return sentence

    def test_trials_without_a_value_are_explained(self):
        medians = (Statistic.MEDIAN,) * 2
        self.assertEqual(self.left_out(), "Left out: 2 trials evaluated on no unseen lengths.")
        self.summary.Clear()
        self.assertEqual(
            self.left_out(quantity=Quantity.LOSS, statistics=medians, lengths=(1, 2)),
            "Left out: 2 trials evaluated at none of the table's scales.",
        )
        self.summary.Clear()
        self.assertEqual(self.left_out(lengths=(100, 0)), "Left out: 2 trials not evaluated at that length.")

    def test_lowest_of_several_medians_is_called_so(self):
        def add(encoding, rate, loss):
            cell = self.summary.cells.add(task="my_even_pairs", network="net", encoding=encoding, learning_rate=rate)
            cell.trials.succeeded = 2
            cell.lengths.append(1)
            one = cell.losses.add()
            one.trials, one.median = 2, loss

        def measured():
            table = self.table(Quantity.LOSS, (Statistic.MEDIAN,) * 2, lengths=(1, 1), cells={})
            return display.remarks(self.beside(table), "*", False)[1]

        add("none", 1e-3, 0.5)
        add("random", 1e-3, 0.5)
        self.assertIn("; the median over the seeds; 2 trials", measured())
        add("none", 1e-4, 0.25)
        self.assertIn(
            "; the lowest of the medians over the seeds, by learning rate, chosen by these errors themselves; 2 trials", measured()
        )

    def test_mean_names_what_it_is_the_best_of(self):
        means = (Statistic.MEAN_AT_BEST_RATE,) * 2
        self.add("even_pairs", "none", 2, 0.5, 0.6)
        text = display.remarks(self.beside(self.table(statistics=means)), "*", False)[1]
        self.assertIn("; mean and sample standard deviation over the seeds; 2 trials", text)
        self.add("even_pairs", "none", 2, 0.5, 0.6).learning_rate = 1e-4
        text = display.remarks(self.beside(self.table(statistics=means)), "*", False)[1]
        self.assertIn("of the learning rate with the highest mean on unseen lengths, as in the paper; 2 trials", text)

    def test_scored_lengths_that_training_shows_are_not_unseen(self):
        self.add("even_pairs", "none", 1, 1, 1)
        self.specification.training.lengths.max = 500
        self.specification.evaluation.seen_up_to = 500
        self.assertIn("accuracy on unseen lengths", display.heading(self.beside(self.table())))
        self.specification.evaluation.seen_up_to = 40
        found = self.beside(self.table())
        self.assertIn("accuracy on lengths above 40, per cent", display.heading(found))
        self.assertIn("Here: a trial's mean accuracy over lengths above 40; ", display.remarks(found, "*", False)[1])

    def test_puzzles_are_unseen_not_lengths(self):
        table = published.find("lst_pe_init/table_2")
        self.assertEqual({one.scored for one in published.tables() if one.key.startswith("lst_pe_init/table_1")}, {"puzzles"})
        cells = [[ComparisonCell() for _ in table.columns] for _ in table.rows]
        cells[0][0] = ComparisonCell(Measurement(50, None, 1))
        found = Comparison("x-1", table, cells)
        self.assertEqual(display.heading(found), "x-1 beside Table 2 of Ito et al.: accuracy on unseen puzzles, per cent.")
        text = display.remarks(found, "*", False)[1]
        self.assertIn(
            "Here: a trial's mean accuracy over the numbers of vectors, on puzzles not seen in training; mean and", text
        )
        self.assertNotIn("lengths", text)
        cells[1][0] = ComparisonCell(Measurement(50, None, 1))
        self.assertIn("and its accuracy on examples of its own data set", display.remarks(found, "*", False)[1])

    def test_row_of_training_accuracies_has_no_best(self):
        rows = [
            PublishedRow("even_pairs", "Even Pairs", "R"),
            PublishedRow("even_pairs", "Even Pairs, training set", quantity=Quantity.TRAINING_ACCURACY),
        ]
        for encoding in ("none", "random"):
            training = self.add("even_pairs", encoding, 3, 0.5, 0.6).training_accuracy
            training.trials, training.mean = 2, 0.75
            training.max = 0.875 if encoding == "none" else 1
        found = self.beside(self.table(rows=rows))
        self.assertEqual(found.cells[0][1].measured.value, 60)
        self.assertEqual(found.cells[1][1].measured.value, 100)
        self.assertEqual(found.cells[1][1].measured.trials, 2)
        self.assertEqual(found.cells[1][0].difference(found.table.quantity_of(1)), 63.8)
        self.assertTrue(found.cells[0][0].best_measured)
        self.assertFalse(found.cells[1][1].best_measured)
        self.assertEqual(found.counted, 6)

    def test_mean_is_taken_at_the_best_learning_rate(self):
        self.add("even_pairs", "random", 2, 0.6, 1).unseen_accuracy.deviation = 0.56
        self.add("even_pairs", "random", 2, 0.75, 0.8).unseen_accuracy.deviation = 0.07
        measured = self.beside(self.table(statistics=(Statistic.MAXIMUM, Statistic.MEAN_AT_BEST_RATE))).cells[0][1].measured
        self.assertAlmostEqual(measured.value, 75)
        self.assertAlmostEqual(measured.deviation, 7)
        self.assertEqual(measured.trials, 2)

    def test_maximum_is_not_held_against_a_mean(self):
        found = self.beside(self.table(statistics=(Statistic.MAXIMUM, Statistic.MEAN_AT_BEST_RATE)))
        self.assertEqual([cell.best_published for cell in found.cells[0]], [False, False])

    def test_times_are_scaled_to_the_papers_steps(self):
        # 18 s for 1,000 steps are 36,000 s, 10 hours, for 2,000,000.
        table = self.table(Quantity.TRAINING_HOURS, (Statistic.MEAN_OF_ALL,) * 2, cells={(0, 0): 0.86, (0, 1): 1.66})
        for encoding, seconds in (("none", 18), ("random", 36)):
            training = self.add("even_pairs", encoding, 1, 1, 1).training_seconds
            training.trials, training.mean = 1, seconds
        found = self.beside(table)
        none, random = found.cells[0]
        self.assertAlmostEqual(none.measured.value, 10)
        self.assertEqual(none.difference(Quantity.TRAINING_HOURS), 9.14)
        self.assertEqual((none.best_measured, random.best_measured, none.best_published), (True, False, True))
        self.assertEqual(found.published_steps, 2_000_000)
        shown = [display.format_quantity(Quantity.TRAINING_HOURS, hours) for hours in (2.754, 10.0049, 121.29, 4321)]
        self.assertEqual(shown, ["2.75", "10", "121", "4,321"])
        self.specification.training.stop_after_seconds = 60
        with self.assertRaisesRegex(UsageError, "stop early"):
            self.beside(table)

    def test_steps_per_second_are_not_scaled(self):
        self.specification.training.stop_after_seconds = 60
        speed = self.add("even_pairs", "random", 2, 1, 1).steps_per_second
        speed.trials, speed.mean, speed.deviation = 2, 336.8, 4
        table = self.table(Quantity.STEPS_PER_SECOND, (Statistic.MEAN_OF_ALL,) * 2, cells={(0, 1): 168.4})
        found = self.beside(table)
        self.assertEqual(found.cells[0][1].measured, Measurement(336.8, 4, 2))
        self.assertEqual(found.cells[0][1].difference(Quantity.STEPS_PER_SECOND), 168.4)
        self.assertEqual((found.steps, found.published_steps), (0, 0), "nothing is scaled")
        text = " ".join(display.remarks(found, "*", False))
        self.assertIn("Here: steps per second of a trial's training (trials of a pack count the whole pack's time", text)
        self.assertNotIn("Best of a row", text)
        self.assertEqual(display.heading(found), " beside Table 1 of Doe 2020 (X): training steps per second.")


class GainTest(unittest.TestCase):
    """Numbers in a paper's text that follow from its table."""

    def compared(self, key, measured):
        """Compares with `measured` by row and column; the other cells were not run."""
        table = published.find(key)
        cells = [
            [ComparisonCell(measured.get((row.task, column.key)), table.cells.get((r, c)))
             for c, column in enumerate(table.columns)]
            for r, row in enumerate(table.rows)
        ]  # fmt: skip
        return Comparison("e-1", table, cells)

    def test_table_reproduces_the_text(self):
        """Section 4: "by 12.0% on average and up to 43.5%"; B.1: 15.7 and 76.3; B.2: 9.7."""
        for key in ("randomized_pe/table_1", "randomized_pe/table_3", "randomized_pe/table_5"):
            table = published.find(key)
            printed = {
                (table.rows[r].task, table.columns[c].key): Measurement(value.value, None, 1)
                for (r, c), value in table.cells.items()
            }
            (gain,) = self.compared(key, printed).gains()
            self.assertEqual(gain.rows, 15)
            self.assertEqual((gain.mean, gain.largest), (gain.published_mean, gain.published_largest))
            self.assertEqual(round(gain.mean, 1), gain.published.mean)
            if gain.published.largest is not None:
                self.assertEqual(round(gain.largest, 1), gain.published.largest)
        self.assertIsNone(gain.published.largest, "B.2 says none")

    def test_covers_the_rows_and_columns_run(self):
        def measured(value):
            return Measurement(value, None, 1)

        found = self.compared(
            "randomized_pe/table_1",
            {
                ("bucket_sort", "none"): measured(27.0), ("bucket_sort", "relative"): measured(52.0),
                ("bucket_sort", "rand_relative"): measured(95.0), ("bucket_sort", "rand_sin_cos"): measured(86.0),
                ("even_pairs", "sin_cos"): measured(60.0), ("even_pairs", "rand_relative"): measured(55.0),
                ("odds_first", "rand_relative"): measured(70.0),
            },
        )  # fmt: skip
        (gain,) = found.gains()
        # Here 95 - 52 and 55 - 60; the paper's 100.0 - 91.9 and 100.0 - 50.9, not its relative's
        # 96.4 on even pairs.
        self.assertEqual((gain.rows, gain.mean, gain.largest), (2, 19.0, 43.0))
        self.assertAlmostEqual(gain.published_mean, (8.1 + 49.1) / 2)
        self.assertAlmostEqual(gain.published_largest, 49.1)
        self.assertEqual(
            display.gain_remarks(found),
            ["In one number, the best randomized encoding less the best other: here +19.0 points on average of 2 rows, at "
             "most +43.0 (the paper's same cells: +28.6 and +49.1; its text, of all 15 rows: +12.0 and +43.5)."],
        )  # fmt: skip
        (written,) = display.as_dictionary(found)["gains"]
        self.assertEqual((written["rows"], written["mean"], written["printed_mean"]), (2, 19.0, 12.0))

    def test_needs_both_sides_of_a_row(self):
        one_side = {("bucket_sort", "rand_relative"): Measurement(95.0, None, 1)}
        self.assertEqual(self.compared("randomized_pe/table_1", one_side).gains(), [])

    def test_must_name_columns(self):
        file = json.loads((SPECIFICATIONS / "published" / "randomized_pe_table_3.json").read_text())
        file["gains"][0]["less"] = ["unsorted"]
        with self.assertRaisesRegex(ValueError, 'a gain names "unsorted", which is not a column'):
            published.parse("randomized_pe_table_3", json.dumps(file))


class LengthStatisticsTest(unittest.TestCase):
    def setUp(self):
        self.table = table_of([], [PublishedColumn("fire", "FIRE", Statistic.MAXIMUM, length=100)], {})
        self.summary = experiment_service_pb2.SummarizeExperimentResponse()
        for encoding in ("fire", "none"):
            self.summary.cells.add(task="addition", network="small", encoding=encoding, learning_rate=1e-3)
        self.trials = []
        self.accuracies = experiment_service_pb2.QueryLengthAccuraciesResponse()

    def add(self, name, encoding, at_100, final=True, state=event_pb2.SUCCEEDED):
        """A trial with an evaluation at 50 and at 100."""
        trial = experiment_service_pb2.Trial(name=name, state=state)
        trial.specification.task.CopyFrom(component("decimal_addition", "addition"))
        trial.specification.network.label = "small"
        trial.specification.encoding.name = encoding
        trial.specification.learning_rate = 1e-3
        self.trials.append(trial)
        evaluation = self.accuracies.evaluations.add(trial=name)
        evaluation.accuracies.final = final
        evaluation.accuracies.lengths.extend([50, 100])
        evaluation.accuracies.accuracies.extend([1, at_100])
        served.set_means(evaluation.accuracies, seen_up_to=0)

    def sum_up(self):
        return comparison.length_statistics(self.table, self.summary, self.trials, self.accuracies.evaluations)

    def test_sums_up_cells_at_the_tables_lengths(self):
        self.add("1", "fire", 0.2)
        self.add("2", "fire", 0.98)
        self.add("3", "none", 0)
        found = self.sum_up()
        self.assertEqual(set(found), {(0, 100), (1, 100)}, "nothing of length 50")
        fire = found[0, 100]
        self.assertEqual((fire.trials, fire.max), (2, 0.98))
        self.assertAlmostEqual(fire.mean, 0.59)
        self.assertAlmostEqual(fire.deviation, 0.78 / math.sqrt(2))
        self.assertEqual((found[1, 100].trials, found[1, 100].deviation), (1, 0))

    def test_length_at_which_nothing_counts_has_no_value(self):
        self.add("1", "fire", math.nan)
        self.add("2", "none", 0.5)
        measured = self.accuracies.evaluations[1].accuracies
        del measured.lengths[1], measured.accuracies[1]
        self.assertEqual(self.sum_up(), {})
        self.add("3", "none", 0.25)
        self.assertEqual({place: one.mean for place, one in self.sum_up().items()}, {(1, 100): 0.25})

    def test_only_final_evaluations_count(self):
        self.add("1", "fire", 0.2, final=False)
        self.add("2", "fire", 0.3, state=event_pb2.RUNNING)
        self.add("3", "rope", 0.4)
        self.assertEqual(self.sum_up(), {})


class DisplayTest(unittest.TestCase):
    """Two levels, two encodings; one cell was not run."""

    def setUp(self):
        table = table_of(
            [
                PublishedRow("even_pairs", "Even Pairs", "R"),
                PublishedRow("bucket_sort", "Bucket Sort", "CS", permutation_invariant=True),
                PublishedRow("odds_first", "Odds First", "CS"),
            ],
            [
                PublishedColumn("none", "None", Statistic.MAXIMUM, encodings=["none"]),
                PublishedColumn("rope", "RoPE & co", Statistic.MAXIMUM, encodings=["rope"]),
            ],
            {},
        )
        cells = [[ComparisonCell(), ComparisonCell()] for _ in range(3)]
        cells[0][0] = ComparisonCell(Measurement(50.34, None, 1), PublishedValue(50.4))
        cells[0][1] = ComparisonCell(Measurement(87.81, None, 1), PublishedValue(60.0, 1.5), True, True)
        cells[1][0] = ComparisonCell(Measurement(27.2, 0.25, 2))
        cells[1][1] = ComparisonCell(None, PublishedValue(30, 2))
        found = protocol.ProtocolComparison([protocol.Difference("steps", "10", "20")])
        self.comparison = Comparison("e-1", table, cells, found, counted=3)

    def terminal(self, width, whole_table=False):
        out = io.StringIO()
        display.write_terminal(self.comparison, whole_table, width, Palette(False), out)
        return out.getvalue()

    def written(self, write, whole_table=False):
        out = io.StringIO()
        write(self.comparison, whole_table, out)
        return out.getvalue()

    def test_terminal_shows_numbers_and_difference(self):
        text = self.terminal(100)
        self.assertIn(
            "                     │ None                     │ RoPE & co\n"
            "level  task          │        here  paper     Δ │  here        paper      Δ\n"
            "─────────────────────┼──────────────────────────┼──────────────────────────\n"
            "R      Even Pairs    │       50.3   50.4   −0.1 │ 87.8*  60.0 ± 1.5*  +27.8\n"
            "─────────────────────┼──────────────────────────┼──────────────────────────\n"
            "CS     Bucket Sort † │ 27.2 ± 0.2               │        30.0 ± 2.0\n",
            text,
        )
        self.assertIn("3 of 6 cells have a value; rows without trials: Odds First", text)
        self.assertIn("steps 10 (paper: 20)", text)
        self.assertIn("1 to 2 trials in each cell.", " ".join(text.split()))

    def test_finished_trials_without_a_value_have_a_dash(self):
        self.comparison.cells[1][1].finished = True
        self.assertIn("│ 27.2 ± 0.2               │    –   30.0 ± 2.0\n", self.terminal(100))
        self.assertIn("| – / 30.0 ± 2.0 /  |", self.written(display.write_markdown))
        self.assertIn("-- & 30.0 $\\pm$ 2.0", self.written(display.write_latex))

    def test_tasks_without_levels_have_no_column_for_them(self):
        self.comparison.table = table_of(
            [PublishedRow(row.task, row.label) for row in self.comparison.table.rows], self.comparison.table.columns, {}
        )
        self.assertIn("\ntask        │ ", self.terminal(100))
        self.assertIn("| Even Pairs | 50.3 / 50.4 / −0.1 |", self.written(display.write_markdown))

    def test_accuracies_stand_beside_those_of_guessing(self):
        chances = {"even_pairs": 50, "bucket_sort": 20, "odds_first": 50}
        rows = [dataclasses.replace(row, random_accuracy=chances[row.task]) for row in self.comparison.table.rows]
        self.comparison.table = table_of(rows, self.comparison.table.columns, {})
        text = self.written(display.write_markdown)
        self.assertIn("| level | task | chance | None | RoPE & co |\n", text)
        self.assertIn("| R | Even Pairs | 50 | 50.3 / 50.4 / −0.1 |", text)
        self.assertRegex(self.terminal(120), r"\nlevel  task +chance │")
        self.assertIn("<td>Bucket Sort †</td><td class=\"right\">20</td>", display.html_table(self.comparison))

    def test_narrow_terminal_splits_the_table(self):
        text = self.terminal(60)
        self.assertIn("│ None\n", text)
        self.assertIn("│ RoPE & co\n", text)

    def test_whole_table_has_empty_rows(self):
        self.assertNotIn("| Odds First |", self.written(display.write_markdown))
        self.assertIn("|  | Odds First |  |  |\n", self.written(display.write_markdown, whole_table=True))

    def test_markdown_marks_the_best_of_a_row(self):
        expected = "| R | Even Pairs | 50.3 / 50.4 / −0.1 | **87.8 / 60.0 ± 1.5 / +27.8** |\n"
        self.assertIn(expected, self.written(display.write_markdown))

    def test_latex_uses_booktabs_and_escapes(self):
        text = self.written(display.write_latex)
        self.assertIn("\\multicolumn{3}{c}{None} & \\multicolumn{3}{c}{RoPE \\& co}", text)
        self.assertIn("\\cmidrule(lr){3-5} \\cmidrule(lr){6-8}\n", text)
        self.assertIn(
            "R & Even Pairs & 50.3 & 50.4 & $-$0.1 & \\textbf{87.8} & \\textbf{60.0 $\\pm$ 1.5} & +27.8 \\\\\n\\midrule\n"
            "CS & Bucket Sort $^\\dagger$ &",
            text,
        )

    def test_html_escapes_and_marks_the_best(self):
        text = display.html_table(self.comparison)
        self.assertIn('<th colspan="3" class="ruled">RoPE &amp; co</th>', text)
        self.assertIn('<td class="right ruled"><strong>87.8</strong></td>', text)
        self.assertIn('<tr class="after-rule"><td>CS</td>', text)

    def test_counts_the_medians_that_the_papers_own_trials_include(self):
        remark = "The median here lies within the 10th to 90th percentiles of the paper's own trials in 1 of 2 cells."
        self.assertNotIn("percentiles", self.terminal(200))
        self.comparison.cells[0][0] = ComparisonCell(Measurement(0.3, None, 1), PublishedValue(0.4, None, 0.3, 0.5))
        self.comparison.cells[0][1] = ComparisonCell(Measurement(0.29, None, 1), PublishedValue(0.4, None, 0.3, 0.5))
        self.comparison.cells[1][1] = ComparisonCell(None, PublishedValue(0.4, None, 0.3, 0.5))
        self.assertIn(remark, self.terminal(200))
        rows = display.records(self.comparison).as_dictionaries()
        self.assertEqual((rows[0]["published_p10"], rows[0]["published_p90"], rows[2]["published_p10"]), (0.3, 0.5, None))

    def test_json_has_every_cell(self):
        out = io.StringIO()
        display.write_json(display.as_dictionary(self.comparison), out)
        found = json.loads(out.getvalue())
        self.assertEqual((len(found["cells"]), found["cells_run"]), (6, 3))
        self.assertEqual((found["cells"][1]["measured"], found["cells"][1]["difference"]), (87.81, 27.8))
        self.assertIsNone(found["cells"][3]["measured"])
        self.assertEqual(found["cells"][3]["published"], 30.0)
        self.assertEqual(found["differences"], [{"what": "steps", "here": "10", "published": "20"}])


class PublishedTableTest(unittest.TestCase):
    def columns(self, table, encoding, network=None):
        return [column.key for column in table.columns if column.matches(network or component(""), encoding)]

    def test_package_carries_every_file(self):
        keys = [table.key for table in published.tables()]
        files = [path.stem for path in (SPECIFICATIONS / "published").glob("*.json") if path.name != published.PAPERS_FILE]
        self.assertEqual(len(keys), 36)
        self.assertEqual(keys, sorted(keys))
        self.assertEqual({key.replace("/", "_") for key in keys}, set(files))

    def test_holds_the_papers_values(self):
        # Ruoss et al., Table 1: missing duplicate, relative 54.0, randomized relative 100.0.
        first = published.find("randomized_pe/table_1")
        self.assertEqual(len(first.cells), 15 * 11)
        self.assertEqual((first.rows[9].task, first.columns[2].key), ("missing_duplicate_string", "relative"))
        self.assertEqual((first.cells[9, 2].value, first.cells[9, 7]), (54.0, PublishedValue(100.0)))
        invariant = {row.task for row in first.rows if row.permutation_invariant}
        self.assertEqual(invariant, {"bucket_sort", "cycle_navigation", "parity_check"})
        # Table 4: bucket sort, learned 20.7 ± 2.9; Table 2: reverse string, randomized relative
        # 2.75 ± 0.41.
        fourth = published.find("randomized_pe/table_4")
        self.assertEqual((fourth.columns[5].key, fourth.columns[5].statistic), ("learned", Statistic.MEAN_AT_BEST_RATE))
        self.assertEqual(fourth.cells[14, 5], PublishedValue(20.7, 2.9))
        second = published.find("randomized_pe/table_2")
        self.assertEqual((second.quantity, second.columns[0].statistic), (Quantity.TRAINING_HOURS, Statistic.MEAN_OF_ALL))
        self.assertEqual((second.rows[1].task, second.columns[7].key), ("reverse_string", "rand_relative"))
        self.assertEqual(second.cells[1, 7], PublishedValue(2.75, 0.41))
        # Appendix B.3, on Figure 5: 1.0 and 0.596, 1.0 and 0.994 at lengths 40 and 150.
        fifth = published.find("randomized_pe/figure_5")
        self.assertEqual([column.length for column in fifth.columns], [40, 150, 40, 150])
        self.assertEqual([fifth.cells[0, column].value for column in range(4)], [100.0, 59.6, 100.0, 99.4])
        # Positional attention, Figure 3: minima of 5,000 vectors at scale 3, from the authors' result files.
        third = published.find("positional_attention/figure_3_5000")
        self.assertEqual((third.rows[3].task, third.rows[3].label), ("cumulative_min", "Cumulative Min, positional"))
        self.assertEqual(third.cells[3, 1], PublishedValue(0.01626, None, 0.006799, 0.02103))
        # Ito et al., Table 3: 0.600 0.722 0.016; Table 4, 0.010: Adam 0.588 and 0.186, SGD 0.885
        # and 0.101.
        maps = published.find("lst_pe_init/table_3")
        self.assertEqual((maps.quantity, len(maps.columns)), (Quantity.ATTENTION_COSINE, 20))
        self.assertEqual((maps.columns[5].key, maps.cells[0, 5]), ("learn_0.6", PublishedValue(0.722, 0.016)))
        self.assertEqual(published.find("lst_pe_init/table_4_adam").cells[0, 0], PublishedValue(58.8, 18.6))
        self.assertEqual(published.find("lst_pe_init/table_4_sgd").cells[0, 0], PublishedValue(88.5, 10.1))

    def test_holds_the_papers_statements(self):
        # Zhou et al. 2024, Figure 1: "more than 98% of accuracy" at 100 digits, with FIRE and randomized positions; section
        # 3: "the 5M model remarkably achieves 80% accuracy in 100 digit addition".
        table = published.find("addition_length_gen/statements")
        self.assertEqual(self.columns(table, component("fire", randomized=True)), ["rand_fire"])
        self.assertEqual(self.columns(table, component("fire", randomized=False)), ["fire"])
        self.assertEqual({place: cell.value for place, cell in table.cells.items()}, {(0, 1): 98.0, (1, 0): 80.0})
        self.assertTrue(table.has_length_accuracies)
        self.assertEqual([column.length for column in table.columns], [100, 100])
        small = component("causal_decoder", blocks=4, heads=4, d_model=256, d_ff=1024)
        self.assertEqual([row.matches(component("decimal_addition"), small) for row in table.rows], [False, True])
        self.assertEqual([row.seeds for row in table.rows], [None, 5])

    def test_name_and_flags_select_the_column(self):
        table = published.find("randomized_pe/table_1")
        self.assertEqual(self.columns(table, component("none")), ["none"])
        self.assertEqual(self.columns(table, component("rope", randomized=False, sorted=True)), ["rope"])
        self.assertEqual(self.columns(table, component("rope", randomized=True, sorted=True)), ["rand_rope"])
        self.assertEqual(self.columns(table, component("rope", randomized=True)), ["rand_rope"])
        self.assertEqual(self.columns(table, component("rope", randomized=True, sorted=False)), [])
        self.assertEqual(self.columns(table, component("sinusoids")), [])
        third = published.find("randomized_pe/table_3")
        unsorted = component("sin_cos", randomized=True, sorted=False)
        self.assertEqual(self.columns(third, unsorted), ["rand_sin_cos_unsorted"])
        self.assertEqual(self.columns(third, component("sin_cos", randomized=True, sorted=True)), ["rand_sin_cos"])

    def test_learned_encodings_differ_in_initial_deviation(self):
        # Ito et al., Table 1: learn-0.2 0.956, 0.039; training 1.000 0.000; nope 0.509 0.002 in
        # training.
        table = published.find("lst_pe_init/table_1")
        self.assertEqual([row.task for row in table.rows], ["latin_square"] * 2)
        self.assertEqual(table.cells[0, 1], PublishedValue(95.6, 3.9))
        self.assertEqual([table.quantity_of(row) for row in (0, 1)], [Quantity.UNSEEN_ACCURACY, Quantity.TRAINING_ACCURACY])
        self.assertEqual(table.cells[1, 1].value, 100.0)
        self.assertEqual(table.cells[1, 6], PublishedValue(50.9, 0.2))
        self.assertEqual(self.columns(table, component("learned", trained=True, stddev=0.2)), ["learn_0.2"])
        self.assertEqual(self.columns(table, component("learned", trained=True, stddev=0.3)), [])
        self.assertEqual(self.columns(table, component("learned", trained=False)), ["random"])
        self.assertEqual(self.columns(table, component("none", causal=True)), ["c_nope"])
        self.assertEqual(self.columns(table, component("none")), ["nope"])

    def test_geometric_attention_has_its_column(self):
        table = published.find("randomized_pe/table_5")
        geometric = component("", attention="geometric")
        self.assertEqual(self.columns(table, component("none"), geometric), ["max_geometric", "avg_geometric"])
        self.assertEqual(self.columns(table, component("rope", randomized=True)), ["max_table1", "avg_table4"])
        self.assertEqual(self.columns(table, component("rope")), [])
        self.assertEqual(self.columns(table, component("none")), [])
        self.assertEqual([table.columns[c].statistic for c in (1, 3)], [Statistic.MAXIMUM, Statistic.MEAN_AT_BEST_RATE])

    def test_figure_9_is_of_rope_over_heads(self):
        # The authors' result files: the sum at c = 3 is 1.767 with RoPE over heads and 0.0006977
        # with positional attention.
        table = published.find("positional_attention/figure_9")
        sums = component("cumulative_sum")

        def is_published(input_positions, rotary):
            network = component(
                "positional_attention", attention_by="input", input_positions=input_positions, rotary=rotary
            )
            self.assertFalse(table.rows[1].matches(sums, network))
            return table.rows[0].matches(sums, network)

        found = [is_published(*one) for one in [(True, "heads"), (True, "tokens"), (True, "none"), (False, "none")]]
        self.assertEqual(found, [True, False, False, False])
        self.assertEqual(self.columns(table, component("rope")), [])
        self.assertEqual((table.cells[0, 2].value, table.cells[1, 2].value), (1.767, 0.0006977))

    def test_unknown_key_gets_a_suggestion(self):
        for wrong in ("randomized_pe/tabel_1", "randomised_pe/table_1"):
            with self.assertRaisesRegex(UsageError, 'did you mean "randomized_pe/table_1"\\?'):
                published.find(wrong)
        with self.assertRaises(UsageError):
            published.find("../etc/passwd")

    def test_refuses_a_file_with_a_cell_outside_the_table(self):
        file = {
            "paper": "p", "citation": "c", "table": "Table 1", "title": "t", "aggregation": "a", "notes": [], "rows": [],
            "comparison": {"quantity": "unseen_accuracy", "statistic": "maximum"}, "protocol": {},
            "columns": [{"key": "none", "label": "None", "encoding": {"name": "none"}}],
            "cells": [{"row": "even_pairs", "column": "none", "value": 1}],
        }  # fmt: skip
        with self.assertRaisesRegex(ValueError, 'p_table_1.json: a cell names "even_pairs", which is not in the table'):
            published.parse("p_table_1", json.dumps(file))
        with self.assertRaisesRegex(ValueError, "p.json: "):
            published.parse("p", "{")


class ProtocolTest(ResolvedTest):
    def table_1(self, yaml):
        return self.lines("randomized_pe/table_1", yaml)

    def addition(self, yaml):
        return self.lines("addition_length_gen/statements", yaml)

    def test_part_of_the_grid_is_no_difference(self):
        self.assertEqual(self.table_1("tasks: bucket_sort\nencodings: [none, {name: rope, randomized: true}]"), [])

    def test_recording_frequency_is_no_difference(self):
        yaml = "tasks: bucket_sort\ntraining: {report_every_steps: 7}\nevaluation: {every_steps: 1000}"
        self.assertEqual(self.table_1(yaml), [])

    def test_names_scaled_down_settings(self):
        self.assertEqual(
            self.table_1(
                "tasks: bucket_sort\n"
                "encodings: [sin_cos, {name: sin_cos, randomized: true, max_position: 256}]\n"
                "networks: {name: encoder, blocks: 2}\n"
                "learning_rates: 1e-3\n"
                "seeds: 0..2\n"
                "training: {steps: 3000, batch_size: 32, lengths: 1..20, clip_norm: 0}\n"
                "evaluation: {lengths: 5..100 step 5, sequences: 200}"
            ),
            ["steps: 3,000 | 2,000,000", "batch size: 32 | 128", "training lengths: 1..20 | 1..40",
             "scored lengths: 25..100 step 5 | 41..500", "sequences per length: 200 | 500",
             "learning rates: 0.001 | 1e-04, 3e-04, 5e-04", "seeds: 3 | 10", "network blocks: 2 | 5",
             "encodings' max_position: 256 | 2048", "clipping of gradients: none | yes"],
        )  # fmt: skip

    def test_unused_number_of_positions_is_no_difference(self):
        yaml = "tasks: bucket_sort\nencodings: {name: %s, max_position: 4096%s}"
        self.assertEqual(self.table_1(yaml % ("sin_cos", "")), [])
        self.assertEqual(self.left_open("randomized_pe/table_1", yaml % ("sin_cos", "")), {})
        self.assertEqual(
            self.table_1(yaml % ("learned", ", randomized: true")), ["encodings' max_position: 4096 | 2048"]
        )
        # The paper has L for positions that are drawn, and no size of the plain table.
        self.assertEqual(self.table_1(yaml % ("learned", "")), [])
        found = self.left_open("randomized_pe/table_1", yaml % ("learned", ""))
        self.assertEqual(found, {"encodings' max_position": "4096: not printed"})

    def test_number_of_positions_matters_where_a_choice_draws_below_it(self):
        start = "name: x\nprotocol: randomized_positional_encodings\n"
        for choice, matters in (("uniform_reals", True), ("skips", True), ("shift", False), ("augmented", False)):
            column = PublishedColumn("own", "Own", Statistic.MAXIMUM, ["rope"], {"positions": choice})
            table = dataclasses.replace(published.find("randomized_pe/table_1"), columns=[column])
            yaml = f"encodings: [{{name: rope, positions: {choice}, max_position: 4096}}]"
            here = protocol.resolve(self.connection, start + yaml)
            paper = protocol.resolve(self.connection, start + yaml.replace("[", "[rope, ").replace("4096", "2048"))
            found = protocol.compare(here, paper, table)
            self.assertEqual((found.differences, found.outside), ([], []), choice)
            # The paper prints it of its own choice alone.
            names = [one.what for one in found.open_fields]
            self.assertEqual(names, ["encodings' max_position"] if matters else [], choice)

    SMALL = "networks: {name: causal_decoder, blocks: 4, heads: 4, d_model: 256, d_ff: 1024}\n"
    STORED = "training: {examples: 30000000, without_replacement: true, data_set_seed: 5}\n"

    def test_the_columns_lengths_are_no_difference(self):
        for lengths in ("100", "1..100"):
            yaml = f"encodings: {{name: fire, randomized: true}}\n{self.STORED}evaluation: {{lengths: {lengths}}}"
            self.assertEqual(self.addition(yaml), [])

    def test_the_rows_network_and_seeds_are_no_difference(self):
        small = self.SMALL + self.STORED + "encodings: fire\n"
        self.assertEqual(self.addition(small + "seeds: 0..4"), [])
        self.assertEqual(self.addition(small + "seeds: 0..9"), [])
        # The paper does not say how many trials its statements are from.
        key = "addition_length_gen/statements"
        self.assertNotIn("seeds", self.left_open(key, small + "seeds: 0..4"))
        self.assertIn("10: not printed of these statements", self.left_open(key, small + "seeds: 0..9")["seeds"])
        other = self.STORED + "encodings: fire\nnetworks: {name: causal_decoder, blocks: 2}"
        self.assertEqual(self.addition(other), ["network blocks: 2 | 6"], "a network of no row")

    def test_another_format_is_a_difference(self):
        self.assertEqual(
            self.addition(
                self.STORED + "tasks: {name: decimal_addition, order: standard, index_hints: false}\nencodings: fire"
            ),
            ["task index_hints: false | true", "task order: standard | reversed"],
        )
        self.assertEqual(
            self.addition(self.STORED + "tasks: {name: decimal_addition, random_space: 0.1}\nencodings: fire"),
            ["task random_space: 0.1 | 0"],
        )

    def test_other_packing_is_reported(self):
        packed = self.STORED.replace("}", ", packing: {%s}}") + "encodings: fire"
        self.assertEqual(
            self.addition(packed % "tokens: 1024, answers_only: true"),
            ["tokens of a sequence: 1,024 | 2,048"],
        )
        answers = self.left_open("addition_length_gen/statements", packed % "answers_only: true")
        self.assertEqual(answers["packing answers_only"], "true: not printed")
        across = self.compare("addition_length_gen/statements", packed % "attend_across: true")
        self.assertEqual(across.differences, [])
        left_open = {one.what: one.here for one in across.open_fields}
        self.assertEqual(left_open["packing attend_across"], "true")
        self.assertEqual(left_open["packing reset_positions"], "false")

    def test_unstored_examples_are_a_difference(self):
        self.assertEqual(
            self.addition("encodings: fire"), ["training examples: new ones at every step | 30,000,000"]
        )

    def test_order_of_stored_examples_is_open(self):
        yaml = "encodings: fire\ntraining: {examples: 30000000}"
        self.assertEqual(self.addition(yaml), [])
        found = self.left_open("addition_length_gen/statements", yaml)
        self.assertTrue(found["examples without replacement"].startswith("false: not printed"))
        self.assertTrue(found["data sets"].startswith("by data seed: not printed"))
        found = self.left_open("addition_length_gen/statements", self.STORED + "encodings: fire")
        self.assertTrue(found["data sets"].startswith("one for all trials: not printed"))

    def test_early_stops_are_a_difference(self):
        yaml = "tasks: bucket_sort\nencodings: none\ntraining: {stop_after_seconds: 3600}"
        self.assertEqual(self.table_1(yaml), ["steps: at most 2,000,000, until 3600 s | 2,000,000"])
        yaml = "encodings: {name: learned, stddev: 0.2}\ntraining: {stop_at_accuracy: 0.9}\nevaluation: {every_steps: 63}"
        self.assertEqual(
            self.lines("lst_pe_init/table_2", yaml), ["epochs: at most 4,001, until accuracy 0.9 | 4,000"]
        )

    def test_length_of_training_is_compared_in_the_papers_unit(self):
        table = "lst_pe_init/table_2"
        yaml = "encodings: {name: learned, stddev: 0.2}\ntraining: {%s}"
        # The text has 4,000 epochs, the released code counts them from 0 to 4,000; neither has a batch size.
        same = ["epochs: 4000", "epochs: 4001", "steps: 252000", "steps: 252063", "epochs: 4000, batch_size: 64"]
        for training in same:
            self.assertEqual(self.lines(table, yaml % training), [], training)
        others = {
            "epochs: 16": "16", "steps: 1000": "15 + 55/63", "steps: 5": "5/63", "steps: 252064": "4,001 + 1/63",
        }  # fmt: skip
        for training, epochs in others.items():
            self.assertEqual(self.lines(table, yaml % training), [f"epochs: {epochs} | 4,000"])
        self.assertEqual(
            self.lines("positional_attention/figure_5", "training: {steps: 1000, examples: 0, schedule: constant}"),
            ["epochs: none, 1,000 steps | 2,000", "training examples: new ones at every step | 30,000"],
        )
        # Batches of one length: 8 x 63 an epoch.
        lengths = "training: {examples: 500000, lengths: 1..8, steps: %d}\nevaluation: {sequences: 3000}"
        self.assertEqual(self.lines("positional_attention/figure_2", lengths % (504 * 2000)), [])
        self.assertEqual(self.lines("positional_attention/figure_2", lengths % 504), ["epochs: 1 | 2,000"])

    def test_trials_as_in_the_text_do_not_differ(self):
        networks = (
            "networks: [{name: positional_attention, scaled: false, attention_first: true},\n"
            "           {name: positional_attention, attention_by: input, input_positions: true, scaled: false,\n"
            "            label: standard}]\n"
        )
        found = self.compare("positional_attention/figure_5", networks + "training: {epochs: 2000}")
        self.assertEqual(found.differences, [])
        self.assertEqual([one.what for one in found.open_fields], ["batch size", "schedule"])
        # Equations 1 and 2.
        self.assertEqual(self.table_1("tasks: bucket_sort\nencodings: {name: sin_cos, interleaved: true}"), [])
        # Appendix C.2. The numbers of Figure 9 are of the code's.
        tokens = (
            "networks: {name: positional_attention, attention_by: input, input_positions: true, rotary: tokens,\n"
            "           label: standard_rope}"
        )
        found = self.compare("positional_attention/figure_9", tokens)
        self.assertEqual((found.differences, found.outside), ([], ["network standard_rope"]))
        self.assertEqual(
            self.lines("positional_attention/figure_9", tokens.replace("rotary: tokens", "rotary: none")),
            ["network rotary: none | tokens"],
        )

    def test_default_of_d_ff_is_its_value(self):
        for width in (0, 64):
            self.assertEqual(
                self.lines("positional_attention/figure_5", f"networks: {{name: positional_attention, d_ff: {width}}}"), []
            )
        self.assertEqual(
            self.lines("positional_attention/figure_5", "networks: {name: positional_attention, d_ff: 32}"),
            ["network d_ff: 32 | 64"],
        )
        self.assertEqual(self.left_open("randomized_pe/table_1", "encodings: none\nnetworks: {name: encoder, d_ff: 256}"), {})
        found = self.left_open("randomized_pe/table_1", "encodings: none\nnetworks: {name: encoder, d_ff: 128}")
        self.assertEqual(list(found), ["network d_ff"])

    def test_other_encodings_are_no_column(self):
        # Table 5 has the best of five randomized encodings.
        fire = "{name: fire, randomized: true}"
        rope = "{name: rope, randomized: true, max_position: 2048}"
        of = ", ".join(f"randomized_{name}" for name in ("sin_cos", "relative", "alibi", "rope", "learned"))
        best = [f"best encoding of: randomized_rope | {of}"]
        self.assertEqual(
            self.lines("randomized_pe/table_5", f"encodings: [{fire}, kerple_log]"),
            [f"encodings: randomized_fire, kerple_log | {of}, ..."],
        )
        self.assertEqual(self.lines("randomized_pe/table_5", "encodings: rope"), [f"encodings: rope | {of}, ..."])
        self.assertEqual(
            self.lines("lst_pe_init/table_4_adam", "encodings: {name: learned, stddev: 0.3}"),
            ["encodings: learned | learned stddev=0.01, learned stddev=0.05, learned stddev=0.1, learned stddev=0.2"],
        )
        found = self.compare("randomized_pe/table_5", f"encodings: [{fire}, {rope}]")
        self.assertEqual(found.outside, ["encoding randomized_fire"])
        self.assertEqual(self.lines("randomized_pe/table_5", f"encodings: [{fire}, {rope}]"), best)
        # Drawn positions are another encoding; so is one that a network gets which the paper gives none.
        found = self.compare("positional_attention/figure_5", "encodings: [one_hot, {name: one_hot, randomized: true}]")
        self.assertEqual(found.outside, ["encoding randomized_one_hot"])
        yaml = "tasks: sorting\nnetworks: graph_network\nencodings: [one_hot, sin_cos]"
        self.assertEqual(self.compare("positional_attention/table_1", yaml).outside, ["encoding sin_cos"])

    def test_other_networks_are_no_row(self):
        networks = "encodings: none\nnetworks: [%s{name: layerwise_encoder, blocks: 5, heads: 8, d_model: 64}]"
        self.assertEqual(self.table_1(networks % ""), ["network: layerwise_encoder | encoder"])
        found = self.compare("randomized_pe/table_1", networks % "encoder, ")
        self.assertEqual((found.differences, found.outside), ([], ["network layerwise_encoder"]))
        table = published.find("randomized_pe/table_1")
        self.assertFalse(table.rows[0].matches(component("even_pairs"), component("layerwise_encoder")))
        self.assertTrue(table.rows[0].matches(component("even_pairs"), component("encoder")))
        # The text of Ito et al. names a standard encoder, with the sizes of the table's network; no cell is of one.
        own = "encodings: {name: learned, stddev: 0.2}\nevaluation: {training_examples: 8000}\nnetworks: {name: encoder, %s}"
        found = self.compare("lst_pe_init/table_2", own % "blocks: 4, heads: 1, d_model: 160")
        self.assertEqual((found.differences, found.outside), ([], ["network encoder"]))
        self.assertEqual(
            self.lines("lst_pe_init/table_2", own % "blocks: 2, heads: 8, d_model: 64"),
            ["network blocks: 2 | 4", "network d_model: 64 | 160", "network heads: 8 | 1"],
        )

    def test_released_code_is_named(self):
        yaml = "tasks: bucket_sort\nencodings: [none, {name: rope, randomized: true}]\ncompatibility: reference_code"
        # Section 3 draws positions once per batch, and no section mentions dropout.
        self.assertEqual(self.table_1(yaml), ["encodings' draws: per_block | shared"])
        found = self.left_open("randomized_pe/table_1", yaml)
        self.assertEqual(found["network dropout"], "0.1: not printed; 0.1 is the released code's")

    def test_compatibility_alone_is_no_difference(self):
        learned = "encodings: {name: learned, stddev: 0.2}\nevaluation: {training_examples: 8000}\n"
        same = self.left_open("lst_pe_init/table_2", learned)
        self.assertEqual(self.lines("lst_pe_init/table_2", learned + "compatibility: reference_code"), [])
        self.assertEqual(self.left_open("lst_pe_init/table_2", learned + "compatibility: reference_code"), same)
        self.assertEqual(self.lines("positional_attention/figure_5", "compatibility: reference_code"), [])
        # An override for an encoding that the table lacks changes none of its trials.
        both = learned.replace("{name: learned, stddev: 0.2}", "[{name: learned, stddev: 0.2}, rope]")
        self.assertEqual(self.left_open("lst_pe_init/table_2", both + "compatibility: reference_code"), same)

    def test_puzzles_are_counted_by_the_number_of_vectors(self):
        self.assertEqual(
            self.lines(
                "lst_pe_init/table_2",
                "encodings: {name: learned, stddev: 0.2}\nevaluation: {lengths: 1..2, sequences: 8}",
            ),
            ["scored numbers of vectors: 1, 2 | 1..3", "puzzles per number of vectors: 8 | 36"],
        )

    def test_missing_human_puzzles_are_reported(self):
        ours = self.compare("lst_pe_init/table_2", "encodings: {name: learned, stddev: 0.2}")
        (puzzles,) = ours.substitutes
        self.assertEqual(puzzles.what, "validation puzzles")
        self.assertIn("generated", puzzles.here)
        self.assertIn("that people solved in a study", puzzles.published)
        with_file = "tasks: {name: latin_square, validation_file: human.json}\nencodings: {name: learned, stddev: 0.2}"
        theirs = self.compare("lst_pe_init/table_2", with_file)
        self.assertEqual(theirs.substitutes, [])
        self.assertEqual([(one.what, name) for one, name in theirs.brought], [("validation puzzles", "human.json")])
        self.assertEqual(
            [one.what for one in theirs.differences], [one.what for one in ours.differences], "the file is no difference"
        )
        remarks = display.protocol_remarks(Comparison("x", published.find("lst_pe_init/table_2"), protocol=theirs))
        self.assertIn(
            "As the experiment says: validation puzzles of human.json (paper: 108 that people solved in a study, 36 of "
            "each condition; in the released data of 4 to 11 clues).",
            remarks,
        )

    def test_choices_of_which_the_paper_says_nothing_are_told(self):
        for key, has_kerple in {"addition_length_gen/statements": True, "randomized_pe/table_1": False}.items():
            compared = Comparison("x", published.find(key), protocol=self.compare(key, "seeds: 0"))
            remarks = " ".join(display.protocol_remarks(compared))
            self.assertIn("whether its trials share their test examples (here all of a length are one draw).", remarks)
            self.assertEqual("Kerple's r1 and r2" in remarks, has_kerple)

    def test_overrides_are_named_with_their_encoding(self):
        encodings = "encodings: [rope, {name: none, causal: true, label: c_nope}, {name: sin_cos_2d, columns: 4}]\n"
        more = encodings + "evaluation: {training_examples: 8000}\ncompatibility: reference_code"
        # Section 2.2 says "no dropout". The text has neither biases nor a temperature.
        self.assertEqual(
            self.lines("lst_pe_init/table_1", more), ["network encoding_dropout with encoding sin_cos_2d: 0.1 | 0"]
        )
        found = self.left_open("lst_pe_init/table_1", more)
        self.assertEqual(
            {what: text.partition(":")[0] for what, text in found.items()},
            {"batch size": "128", "networks d_ff": "640", "network attention_biases with encoding rope": "none",
             "network attention_biases with encoding c_nope": "none", "network temperature with encoding c_nope": "0.01",
             "network attention_initial with encoding rope": "linear",
             "network attention_initial with encoding c_nope": "linear"},
        )  # fmt: skip
        self.assertIn("0.01 is the released code's", found["network temperature with encoding c_nope"])

    def test_sizes_of_graph_networks_are_ours(self):
        found = self.compare("positional_attention/table_1", "tasks: sorting\nnetworks: graph_network\nseeds: 0..2")
        self.assertEqual(found.differences, [])
        left_open = {one.what: one.here for one in found.open_fields}
        self.assertEqual(left_open["networks blocks"], "4")
        self.assertEqual(left_open["networks d_model"], "64")
        self.assertEqual(left_open["seeds"], "3")

    def test_parameters_of_an_open_schedule_have_its_note(self):
        yaml = "training: {schedule: {name: plateau, patience: 9}}"
        self.assertEqual(self.lines("positional_attention/figure_5", yaml), [])
        found = self.left_open("positional_attention/figure_5", yaml)
        self.assertEqual(found["schedule patience"].partition(": ")[2], found["schedule"].partition(": ")[2])
        self.assertIn('"a learning rate scheduler"', found["schedule patience"])

    def test_field_of_a_new_api_is_compared(self):
        # Removes the rule for `precision`, to stand for a new field: a field without a rule is
        # reported under its own name.
        names = dict(protocol._NAMES)
        del protocol._NAMES["training.precision"]
        self.addCleanup(protocol._NAMES.update, names)
        yaml = "tasks: bucket_sort\nencodings: none\ntraining: {precision: float64}"
        self.assertEqual(self.left_open("randomized_pe/table_1", yaml), {"precision": "float64: not printed"})






class SideBySideTest(unittest.TestCase):
    def test_two_experiments_stand_cell_by_cell(self):
        def cell(trials, mean, deviation):
            one = experiment_service_pb2.SummarizeExperimentResponse.Cell(
                task="bucket_sort", network="encoder", encoding="none", learning_rate=0.001
            )
            one.unseen_accuracy.trials, one.unseen_accuracy.mean, one.unseen_accuracy.deviation = trials, mean, deviation
            return one

        pairs = experiment_difference.match([cell(3, 0.5, 0.05)], [cell(1, 0.875, 0)])
        text = experiment_difference.as_table(pairs, "e-1", "f-1").render(110, Palette(False))
        self.assertIn("none     │ 50.0 ± 5.0  3 │     87.5  1 │ +37.5\n", text)
        out = io.StringIO()
        experiment_difference.as_records(pairs).write_csv(out)
        self.assertIn("\nbucket_sort,encoder,none,0.001,0.5,0.05,3,0.875,,1,0.375,,,\n", out.getvalue())

    def test_unmatched_cell_has_no_difference(self):
        only = experiment_service_pb2.SummarizeExperimentResponse.Cell(task="t", network="n", encoding="e")
        (pair,) = experiment_difference.match([], [only])
        self.assertIsNone(pair.first)
        self.assertIsNone(pair.difference())


class ExperimentDifferenceTest(ResolvedTest):
    FIRST = (
        "encodings: [{name: sin_cos, randomized: true, max_position: 256, label: short},\n"
        "            {name: sin_cos, randomized: true, max_position: 512, label: long}]\n"
        "training: {steps: 2000}\nevaluation: {lengths: 1..60}\n"
    )

    def differences(self, first, second):
        one, two = (
            protocol.resolve(self.connection, "name: x\ntasks: bucket_sort\nlearning_rates: 0.001\n" + yaml)
            for yaml in (first, second)
        )
        return [f"{field}: {here} | {there}" for field, here, there in experiment_difference.differences(one, two)]

    def test_experiment_does_not_differ_from_itself(self):
        self.assertEqual(self.differences(self.FIRST, self.FIRST), [])

    def test_names_every_field_that_decides_results(self):
        self.assertEqual(
            self.differences(
                self.FIRST,
                "seeds: [0, 1]\n"
                "encodings: [none, {name: sin_cos, randomized: true, max_position: 300, label: short}]\n"
                "networks: {name: encoder, blocks: 2}\n"
                "training: {steps: 3000, stop_after_seconds: 60}\n"
                "evaluation: {lengths: 1..80, seed: 4, interval_lengths: 9}\n",
            ),
            ["encodings.short.max_position: 256 | 300",
             "evaluation.interval_lengths: 1, 9, 18, 26, 35, 43, 52, 60 | 9",
             "evaluation.lengths: 1..60 | 1..80", "evaluation.seed: 0 | 4", "networks.encoder.blocks: 5 | 2",
             "seeds: 0 | 0, 1", "training.steps: 2,000 | 3,000", "training.stop_after_seconds: 0 | 60"],
        )  # fmt: skip

    def sentences(self, first, second):
        one, two = (
            protocol.resolve(self.connection, "name: x\ntasks: bucket_sort\nlearning_rates: 0.001\n" + yaml)
            for yaml in (first, second)
        )
        return experiment_difference.sentences(one, two, ("a-1", "b-1"))

    def test_only_trials_with_the_same_labels_are_alike(self):
        self.assertEqual(self.sentences(self.FIRST, self.FIRST), ["Both were trained and scored alike."])
        both = self.FIRST.replace("label: long", "label: other")
        self.assertEqual(
            self.sentences(self.FIRST, both),
            ["What both have was trained and scored alike.", "Only in a-1: encoding long.", "Only in b-1: encoding other."],
        )
        none = both.replace("label: short", "label: third")
        self.assertEqual(
            self.sentences(self.FIRST, none),
            ["They have no trials with the same labels.", "Only in a-1: encodings short, long.",
             "Only in b-1: encodings third, other."],
        )  # fmt: skip
        longer = both.replace("steps: 2000", "steps: 3000")
        self.assertEqual(
            self.sentences(self.FIRST, longer)[0], "How b-1 differs: training.steps 3,000 (a-1: 2,000)."
        )
        self.assertEqual(len(self.sentences(self.FIRST, longer)), 3)

    def test_names_networks_that_depend_on_the_encoding(self):
        override = "network_overrides: {encoding: long, network: {name: encoder, dropout: 0.1}}"
        self.assertEqual(
            self.differences(self.FIRST, self.FIRST + override), ["networks.encoder.dropout with long:  | 0.1"]
        )


if __name__ == "__main__":
    unittest.main()
