// Tables of encodings that add the same vectors in every model, without LibTorch: what the tables
// that models learned are compared with.
#ifndef LENGTHWISE_MODELS_ENCODINGS_FIXED_TABLE_H_
#define LENGTHWISE_MODELS_ENCODINGS_FIXED_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "catalogue/entry.h"

namespace lengthwise::models {

// The encodings that FixedTable knows.
std::vector<std::string> EncodingsWithFixedTables();

// What the encoding adds to the features of the token at position p in row p: [rows, d_model],
// row-major. `parameters` come from catalogue::Resolve, and `d_model` passes the encoding's check.
// Nothing for an encoding that has no such table: it is another or its positions are drawn.
std::optional<std::vector<double>> FixedTable(absl::string_view encoding,
                                              const catalogue::Parameters& parameters, int64_t rows,
                                              int64_t d_model);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_FIXED_TABLE_H_
