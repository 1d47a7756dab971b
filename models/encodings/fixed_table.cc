#include "models/encodings/fixed_table.h"

#include <cmath>

namespace lengthwise::models {
namespace {

// Feature `i` of d of a position (sinusoids.h): frequency f has its sine and cosine side by side,
// or all sines come before all cosines.
double Sinusoid(int64_t position, int64_t i, int64_t d, bool interleaved) {
  const int64_t frequency = interleaved ? i / 2 : i % (d / 2);
  const bool is_sine = interleaved ? i % 2 == 0 : i < d / 2;
  const double angle =
      static_cast<double>(position) *
      std::pow(10000.0, -2 * static_cast<double>(frequency) / static_cast<double>(d));
  return is_sine ? std::sin(angle) : std::cos(angle);
}

}  // namespace

std::vector<std::string> EncodingsWithFixedTables() { return {"sin_cos", "sin_cos_2d"}; }

std::optional<std::vector<double>> FixedTable(absl::string_view encoding,
                                              const catalogue::Parameters& parameters, int64_t rows,
                                              int64_t d_model) {
  const bool grid = encoding == "sin_cos_2d";
  if (!grid && (encoding != "sin_cos" || parameters.Bool("randomized"))) return std::nullopt;
  const int64_t columns = grid ? parameters.Int("columns") : 0;
  const bool interleaved = grid || parameters.Bool("interleaved");
  std::vector<double> table;
  table.reserve(static_cast<size_t>(rows * d_model));
  for (int64_t position = 0; position < rows; ++position) {
    for (int64_t i = 0; i < d_model; ++i) {
      if (!grid) {
        table.push_back(Sinusoid(position, i, d_model, interleaved));
      } else if (const int64_t half = d_model / 2; i < half) {
        table.push_back(Sinusoid(position % columns, i, half, interleaved));
      } else {
        table.push_back(Sinusoid(position / columns, i - half, half, interleaved));
      }
    }
  }
  return table;
}

}  // namespace lengthwise::models
