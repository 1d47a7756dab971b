"""Compares the measures of analyses with formulas, and with scipy.stats, scipy.spatial and scipy.linalg of SciPy
1.17.1.
"""
import math
import unittest

import numpy
import service  # noqa: F401 (it installs the package)
from lengthwise.analyses import measures


class MeasuresTest(unittest.TestCase):
    PEOPLE = [0.975, 0.95, 0.975, 0.4, 0.625, 0.4, 0.85, 0.775, 0.5]
    MODELS = [1, 0.93, 1, 0.6, 0.2, 0.53, 0.93, 0.8, 0.6]
    A = numpy.array([1, 2, 0, 0, -1, 3, 2, 2, 1, 4, 0, -1]).reshape(4, 3)
    B = numpy.array([0, 1, 1, 2, 0, -1, 1, 1, 0, 3, -2, 1]).reshape(4, 3)

    def test_correlations(self):
        spearman = measures.spearman_correlation(self.PEOPLE, self.MODELS)
        self.assertAlmostEqual(spearman.coefficient, 0.8808590390495851, 12)
        self.assertAlmostEqual(spearman.p_value, 0.0017074313481858763, 12)
        monotonous = measures.spearman_correlation([1, 2, 3, 4], [1, 8, 27, 1000])
        self.assertAlmostEqual(monotonous.coefficient, 1, 12)
        self.assertAlmostEqual(monotonous.p_value, 0, 12)
        self.assertAlmostEqual(measures.spearman_correlation([1, 2, 3, 4], [9, 7, 5, 1]).coefficient, -1, 12)

    def test_correlations_need_pairs_that_vary(self):
        self.assertIsNone(measures.spearman_correlation([1, 2], [1, 2]))
        self.assertIsNone(measures.spearman_correlation([1, 2, 3], [5, 5, 5]))
        with self.assertRaises(ValueError):
            measures.spearman_correlation([1, 2, 3], [1, 2])

    def test_paired_t_test(self):
        first = [0.993, 0.981, 0.999, 0.972, 0.990, 0.985]
        second = [0.991, 0.984, 0.990, 0.966, 0.975, 0.987]
        found = measures.paired_t_test(first, second)
        self.assertAlmostEqual(found.t, 1.5993419699495495, 10)
        self.assertEqual(found.degrees_of_freedom, 5)
        self.assertAlmostEqual(found.p_value, 0.1706398209597133, 10)
        other = measures.paired_t_test(second, first)
        self.assertEqual((other.t, other.p_value), (-found.t, found.p_value))
        self.assertIsNone(measures.paired_t_test([1], [1]))
        self.assertIsNone(measures.paired_t_test([1, 2], [2, 3]), "all differences are the same")
        with self.assertRaises(ValueError):
            measures.paired_t_test([1, 2], [1])

    def test_equal_differences_give_no_test(self):
        self.assertIsNone(measures.paired_t_test([0.1, 0.2, 0.3], [0.0, 0.1, 0.2]))

    # 0.005 * 4, 0.01 * 3, 0.03 * 2, and no less for 0.04 * 1.
    def test_holm_adjusts_for_the_number_of_tests(self):
        for found, expected in zip(measures.holm_adjusted([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02]):
            self.assertAlmostEqual(found, expected, 15)
        self.assertEqual(measures.holm_adjusted([0.6, 0.7]), [1, 1])
        self.assertEqual(measures.holm_adjusted([0.25]), [0.25])
        self.assertEqual(measures.holm_adjusted([]), [])

    def test_share_interval_is_wilsons(self):
        # Wilson 1927, with the two-sided 95 % quantile of the normal distribution.
        z = 1.959963984540054
        for passed, of in ((0, 10), (3, 10), (10, 10), (1, 3), (500, 1000)):
            p = passed / of
            middle = (p + z**2 / (2 * of)) / (1 + z**2 / of)
            half = z / (1 + z**2 / of) * math.sqrt(p * (1 - p) / of + z**2 / (4 * of**2))
            low, high = measures.share_interval(passed, of)
            self.assertAlmostEqual(low, max(0, middle - half), 12)
            self.assertAlmostEqual(high, min(1, middle + half), 12)
        with self.assertRaises(ValueError):
            measures.share_interval(0, 0)

    def test_procrustes_distance(self):
        self.assertAlmostEqual(measures.procrustes_distance(self.A, self.B), 3.168967086878937, 12)
        ones = numpy.ones((4, 3))
        self.assertAlmostEqual(measures.procrustes_distance(ones, self.A), 4.964383772683609, 12, "rank one")
        i, j = numpy.meshgrid(numpy.arange(16), numpy.arange(40), indexing="ij")
        a, b = numpy.sin(1 + i * 0.7 + j * j * 0.13), numpy.cos(0.3 * i * j)
        self.assertAlmostEqual(measures.procrustes_distance(a, b), 21.05515220160724, 11)
        c, s = math.cos(0.4), math.sin(0.4)
        turned = self.A @ numpy.array([[c, 0, s], [0, -1, 0], [-s, 0, c]])
        self.assertAlmostEqual(measures.procrustes_distance(self.A, turned), 0, 6)
        self.assertAlmostEqual(measures.procrustes_distance(numpy.zeros((4, 3)), self.B), math.sqrt(23), 12)
        with self.assertRaises(ValueError):
            measures.procrustes_distance(self.A, [[1.0]])
        with self.assertRaises(ValueError):
            measures.procrustes_distance([[math.inf]], [[1.0]])

    def test_cosine(self):
        self.assertAlmostEqual(measures.cosine_similarity([1, 2, 3, -4], [2, 0, -1, 5]), -0.7, 12)
        self.assertAlmostEqual(measures.cosine_similarity([1, 2], [10, 20]), 1, 12)
        self.assertEqual(measures.cosine_similarity([1, 0], [0, 3]), 0)
        with self.assertRaises(ValueError):
            measures.cosine_similarity([1, 2], [1])
        with self.assertRaises(ValueError):
            measures.cosine_similarity([0, 0], [1, 2])

    # scipy.spatial.distance.jensenshannon(p, q) ** 2.
    def test_jensen_shannon_divergence(self):
        found = measures.jensen_shannon_divergence([0.1, 0.2, 0.3, 0.4, 0], [0.25, 0.25, 0.25, 0, 0.25])
        self.assertAlmostEqual(float(found), 0.24440610724204642, 12)
        self.assertAlmostEqual(float(measures.jensen_shannon_divergence([1, 2, 3], [3, 2, 1])), 0.08720802396075801, 12)
        self.assertEqual(float(measures.jensen_shannon_divergence([0.2, 0.8], [0.2, 0.8])), 0)
        disjoint = measures.jensen_shannon_divergence([[1, 0, 0], [1, 0, 0]], [[0, 0.5, 0.5], [1, 0, 0]])
        self.assertAlmostEqual(disjoint[0], math.log(2), 14)
        self.assertEqual(disjoint[1], 0)
        for first, second in (([1, 2], [1]), ([1, -2], [1, 2]), ([0, 0], [1, 2]), ([1, math.nan], [1, 2])):
            with self.assertRaises(ValueError):
                measures.jensen_shannon_divergence(first, second)

    # 2 * scipy.stats.t.sf(0.962, 14), as Ito et al. print.
    def test_the_papers_t_has_its_p(self):
        import scipy.stats

        self.assertAlmostEqual(2 * scipy.stats.t.sf(0.962, 14), 0.35237186568802764, 12)


if __name__ == "__main__":
    unittest.main()
