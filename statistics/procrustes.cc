#include "statistics/procrustes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lengthwise::statistics {
namespace {

using Vector = std::vector<double>;

double Dot(const Vector& x, const Vector& y) {
  return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}

// The sum of the singular values of the matrix with these columns: one-sided Jacobi rotations turn
// pairs of columns until all are orthogonal; then their lengths are the singular values.
double NuclearNorm(std::vector<Vector> columns) {
  constexpr double kOrthogonal = 1e-15;
  constexpr int kSweeps = 60;
  bool turned = true;
  for (int sweep = 0; turned && sweep < kSweeps; ++sweep) {
    turned = false;
    for (size_t i = 0; i + 1 < columns.size(); ++i) {
      for (size_t j = i + 1; j < columns.size(); ++j) {
        const double xx = Dot(columns[i], columns[i]);
        const double yy = Dot(columns[j], columns[j]);
        const double xy = Dot(columns[i], columns[j]);
        if (std::abs(xy) <= kOrthogonal * std::sqrt(xx * yy)) continue;
        turned = true;
        const double cotangent = (yy - xx) / (2 * xy);
        const double tangent =
            std::copysign(1.0, cotangent) / (std::abs(cotangent) + std::hypot(1.0, cotangent));
        const double cosine = 1 / std::hypot(1.0, tangent);
        const double sine = cosine * tangent;
        for (size_t k = 0; k < columns[i].size(); ++k) {
          const double x = columns[i][k];
          const double y = columns[j][k];
          columns[i][k] = cosine * x - sine * y;
          columns[j][k] = sine * x + cosine * y;
        }
      }
    }
  }
  double sum = 0;
  for (const Vector& column : columns) sum += std::sqrt(Dot(column, column));
  return sum;
}

// The rows of the lower triangular L with X = L Q, for X given by its rows and Q with orthonormal
// rows: what Gram-Schmidt, applied twice for accuracy, takes off each row.
std::vector<Vector> TriangularFactor(const std::vector<Vector>& rows,
                                     std::vector<Vector>& orthonormal) {
  std::vector<Vector> factor;
  for (const Vector& row : rows) {
    Vector rest = row;
    Vector entry(orthonormal.size(), 0.0);
    for (int round = 0; round < 2; ++round) {
      for (size_t k = 0; k < orthonormal.size(); ++k) {
        const double part = Dot(rest, orthonormal[k]);
        entry[k] += part;
        for (size_t c = 0; c < rest.size(); ++c) rest[c] -= part * orthonormal[k][c];
      }
    }
    const double length = std::sqrt(Dot(rest, rest));
    if (length > 1e-14 * std::sqrt(Dot(row, row))) {
      for (double& value : rest) value /= length;
      orthonormal.push_back(std::move(rest));
      entry.push_back(length);
    }
    factor.push_back(std::move(entry));
  }
  for (Vector& entry : factor) entry.resize(orthonormal.size(), 0.0);
  return factor;
}

std::vector<Vector> Rows(absl::Span<const double> matrix, size_t rows, size_t columns) {
  std::vector<Vector> result;
  for (size_t row = 0; row < rows; ++row) {
    const absl::Span<const double> values = matrix.subspan(row * columns, columns);
    result.emplace_back(values.begin(), values.end());
  }
  return result;
}

// The columns of transposed X times Y, for X and Y given by as many rows.
std::vector<Vector> TransposedProduct(const std::vector<Vector>& x, const std::vector<Vector>& y) {
  if (x.empty() || x[0].empty() || y[0].empty()) return {};
  std::vector<Vector> columns(y[0].size(), Vector(x[0].size(), 0.0));
  for (size_t row = 0; row < x.size(); ++row) {
    for (size_t j = 0; j < y[row].size(); ++j) {
      for (size_t i = 0; i < x[row].size(); ++i) columns[j][i] += x[row][i] * y[row][j];
    }
  }
  return columns;
}

}  // namespace

absl::StatusOr<double> ProcrustesDistance(absl::Span<const double> a, absl::Span<const double> b,
                                          size_t rows, size_t columns) {
  if (a.size() != rows * columns || b.size() != rows * columns) {
    return absl::InvalidArgumentError(absl::StrCat("matrices of ", rows, " x ", columns, " have ",
                                                   rows * columns, " numbers, not ", a.size(),
                                                   " and ", b.size()));
  }
  double squares = 0;
  for (const absl::Span<const double> matrix : {a, b}) {
    for (const double value : matrix) squares += value * value;
  }
  if (!std::isfinite(squares)) {
    return absl::InvalidArgumentError("a matrix has a number that is not finite");
  }
  // With A = L_A Q_A and B = L_B Q_B the singular values of A^T B are those of L_A^T L_B, which is
  // as small as the number of rows: encodings have many more columns.
  std::vector<Vector> orthonormal_a, orthonormal_b;
  const std::vector<Vector> factor_a = TriangularFactor(Rows(a, rows, columns), orthonormal_a);
  const std::vector<Vector> factor_b = TriangularFactor(Rows(b, rows, columns), orthonormal_b);
  const double nuclear = NuclearNorm(TransposedProduct(factor_a, factor_b));
  return std::sqrt(std::max(squares - 2 * nuclear, 0.0));
}

}  // namespace lengthwise::statistics
