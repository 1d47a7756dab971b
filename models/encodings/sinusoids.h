// Sines and cosines of positions and of their differences. Angles are double; results have the
// parameters' type.
#ifndef LENGTHWISE_MODELS_ENCODINGS_SINUSOIDS_H_
#define LENGTHWISE_MODELS_ENCODINGS_SINUSOIDS_H_

#include <cstdint>

#include "ATen/core/Tensor.h"

namespace lengthwise::models {

// PE(p) = [sin(p f_0), ..., sin(p f_{d/2-1}), cos(p f_0), ..., cos(p f_{d/2-1})] with f_i =
// 10000^(-2i/d): Vaswani et al. 2017, section 3.5, with all sines before all cosines. `positions`
// [...] may have any type and be negative, such as distances. Returns [..., d] of `dtype` on their
// device. `d` is even.
at::Tensor Sinusoids(const at::Tensor& positions, int64_t d, at::ScalarType dtype);

// The same features interleaved: [sin(p f_0), cos(p f_0), sin(p f_1), ...].
at::Tensor InterleavedSinusoids(const at::Tensor& positions, int64_t d, at::ScalarType dtype);

// PE(p_j - p_i) for rows i = first .. first + count - 1 and all columns j, computed from
// `sinusoids` = PE(p) [P, n, d] by the addition theorems: [P, count, n, d]. Each pair of numbers
// takes four products instead of a sine and a cosine.
at::Tensor SinusoidsOfDifferences(const at::Tensor& sinusoids, int64_t first, int64_t count);

// Rotates features 2i and 2i + 1 of `features` [P, B, H, n, dh] by the i-th angle. `sinusoids` [P,
// n, dh] holds the angles' sines, then their cosines. Returns the features' type.
at::Tensor TurnPairs(const at::Tensor& features, const at::Tensor& sinusoids);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_SINUSOIDS_H_
