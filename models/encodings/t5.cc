// T5's relative position bias (Raffel et al. 2020, section 2.1): a learned number for each head and
// bucket of distances, shared by all blocks. Distances below half of the buckets have one bucket
// each. Longer ones, up to max_distance, share logarithmic buckets; all beyond it share the last:
//
//   causal, d = p_i - p_j >= 0, h = buckets / 2:
//     d for d < h, otherwise min(h + floor(h log(d / h) / log(max_distance / h)), buckets - 1)
//
// Distances of real positions are rounded down. If the network sees both directions, each gets half
// of the buckets: the first half for keys before the query, the second half for keys after it.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ATen/ops/tensor.h"
#include "models/encodings/additive.h"
#include "models/encodings/kept_tensors.h"
#include "models/layers/layers.h"

namespace lengthwise::models {
namespace {

class T5 : public AdditiveEncoding {
 public:
  T5(const catalogue::Parameters& parameters, const EncodingShape& shape, ParameterLayout& layout)
      : heads_(shape.heads),
        causal_(shape.causal),
        each_way_(parameters.Int("buckets") / (shape.causal ? 1 : 2)),
        table_(layout.Add("encoding.table", {parameters.Int("buckets"), shape.heads},
                          {.kind = Initializer::Kind::kNormal,
                           .stddev = 1 / std::sqrt(static_cast<double>(shape.d_model))})),
        max_distance_(parameters.Int("max_distance")),
        buckets_(Buckets(each_way_, max_distance_)) {}

 protected:
  at::Tensor Bias(const ParameterSet& parameters, int64_t /*block*/, const at::Tensor& positions,
                  int64_t first, int64_t count) const override {
    const int64_t members = positions.size(0), n = positions.size(1);
    const at::Tensor behind =
        positions.unsqueeze(1).sub(positions.narrow(1, first, count).unsqueeze(2));
    // Causal attention hides keys after the query, so that any bucket will do: take distance 0.
    const at::Tensor distances = causal_ ? behind.neg().clamp_min(0) : behind.abs();
    at::Tensor buckets =
        buckets_.On(positions.device())
            .index_select(0, distances.clamp_max(max_distance_).to(at::kLong).flatten())
            .view({members, count, n});
    if (!causal_) buckets = buckets.add(behind.gt(0), each_way_);
    return Embed(buckets, parameters[table_]).permute({0, 3, 1, 2});
  }

  int64_t NumbersPerPair() const override { return 2 * heads_; }

 private:
  static at::Tensor Buckets(int64_t each_way, int64_t max_distance) {
    std::vector<int64_t> buckets;
    for (int64_t distance = 0; distance <= max_distance; ++distance) {
      buckets.push_back(T5Bucket(distance, each_way, max_distance));
    }
    return at::tensor(buckets);
  }

  int64_t heads_;
  bool causal_;
  int64_t each_way_;
  ParameterId table_;
  int64_t max_distance_;
  Constant buckets_;  // int64: buckets of distances 0 .. max_distance
};

}  // namespace

int64_t T5Bucket(int64_t distance, int64_t buckets, int64_t max_distance) {
  const int64_t exact = buckets / 2;
  if (distance < exact) return distance;
  const double share = std::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                       std::log(static_cast<double>(max_distance) / static_cast<double>(exact));
  return std::min(exact + static_cast<int64_t>(share * static_cast<double>(buckets - exact)),
                  buckets - 1);
}

std::unique_ptr<Encoding> CreateT5(const catalogue::Parameters& parameters,
                                   const EncodingShape& shape, ParameterLayout& layout) {
  return std::make_unique<T5>(parameters, shape, layout);
}

}  // namespace lengthwise::models
