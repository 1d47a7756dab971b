// Sines and cosines of column and row, for the cells of a grid (relational reasoning on Latin
// squares, section 3.3, "2d-fixed"): the first half of the features belong to the column, the
// second to the row, with frequencies 10000^(-2i/(d/2)) and sine and cosine in turn, as in the
// released code, whose results the paper prints.
#ifndef LENGTHWISE_MODELS_ENCODINGS_SIN_COS_2D_H_
#define LENGTHWISE_MODELS_ENCODINGS_SIN_COS_2D_H_

#include <memory>

#include "models/encodings/catalogue.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

class Encoding;
struct EncodingShape;

const EncodingEntry& SinCos2dEntry();

// d_model must be a multiple of four.
std::unique_ptr<Encoding> CreateSinCos2d(const catalogue::Parameters& parameters,
                                         const EncodingShape& shape, ParameterLayout& layout);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_SIN_COS_2D_H_
