// Sines and cosines of positions and of distances between them, in parameters' precision from
// angles in double.
#ifndef LENGTHWISE_MODELS_ENCODINGS_SINUSOIDS_H_
#define LENGTHWISE_MODELS_ENCODINGS_SINUSOIDS_H_

#include <cstdint>

#include "ATen/core/Tensor.h"

namespace lengthwise::models {

// PE(p) = [sin(p f_0), ..., sin(p f_{d/2-1}), cos(p f_0), ..., cos(p f_{d/2-1})] with f_i =
// 10000^(-2i/d): Vaswani et al. 2017, section 3.5, with the features sorted by sine and cosine.
// `positions` [...] are numbers of any type, may be negative and may be distances; the result is
// [..., d] of `dtype` on their device. `d` is even.
at::Tensor Sinusoids(const at::Tensor& positions, int64_t d, at::ScalarType dtype);

// The same features with sine and cosine in turn: [sin(p f_0), cos(p f_0), sin(p f_1), ...].
at::Tensor InterleavedSinusoids(const at::Tensor& positions, int64_t d, at::ScalarType dtype);

// PE(p_j - p_i) for rows i = first .. first + count - 1 and all columns j, from `sinusoids` = PE(p)
// [P, n, d] by the addition theorems: [P, count, n, d]. Costs four products a number instead of a
// sine.
at::Tensor SinusoidsOfDifferences(const at::Tensor& sinusoids, int64_t first, int64_t count);

// Turns the features 2i and 2i + 1 of `features` [P, B, H, n, dh] by the i-th of the angles whose
// sines and then cosines are `sinusoids` [P, n, dh]. In the features' type.
at::Tensor TurnPairs(const at::Tensor& features, const at::Tensor& sinusoids);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_SINUSOIDS_H_
