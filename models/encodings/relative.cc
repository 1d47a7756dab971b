// Relative encoding of Transformer-XL (Dai et al. 2019, section 3.3), bidirectional, with the
// signed distance from query to key as in the reference code of randomized positional encodings:
//
//   logits[i, j] = ((q_i + u) . k_j + (q_i + v) . (PE(distance(i, j)) W_R)) / sqrt(dh)
//
// u, v [H, dh] and W_R [d, d] are parameters of every block.
//
// distance(i, j) is p_j - p_i for positions p: j - i for consecutive positions, the paper's
// randomized distance for a subset. With distances = "offsets" it is sign(j - i) * p_|j - i|: all
// pairs of tokens m places apart have the same distance p_m, as in the paper's published code. That
// code's table of sinusoids is too short. clamped_table = true reproduces this: the distance is L -
// 1 for j >= i and L - p_|j - i| for j < i.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ATen/ops/cat.h"
#include "ATen/ops/full_like.h"
#include "absl/strings/str_cat.h"
#include "c10/core/GradMode.h"
#include "models/encodings/encoding.h"
#include "models/encodings/kept_tensors.h"
#include "models/encodings/positions.h"
#include "models/encodings/relative_logits.h"
#include "models/encodings/sinusoids.h"
#include "models/layers/layers.h"
#include "models/layers/products.h"

namespace lengthwise::models {
namespace {

// Memory bound of RowsAtOnce, in elements of the distances' sinusoids. Long sequences are evaluated
// some rows at a time.
constexpr int64_t kMaxElements = int64_t{1} << 22;

// Numbers of R that a GPU keeps for the backward pass of a block, 64 MiB: those of 30 members of 80
// tokens.
constexpr int64_t kMostKept = int64_t{1} << 24;

class Relative : public Encoding {
 public:
  Relative(const catalogue::Parameters& parameters, const EncodingShape& shape,
           ParameterLayout& layout)
      : differences_(PositionPolicy(parameters).consecutive() ||
                     parameters.String("distances") != "offsets"),
        toeplitz_(PositionPolicy(parameters).consecutive() || !differences_),
        clamped_to_(parameters.Bool("clamped_table") ? parameters.Int("max_position") : 0),
        heads_(shape.heads),
        d_model_(shape.d_model),
        head_size_(shape.HeadSize()) {
    const Initializer normal = {.kind = Initializer::Kind::kNormal, .stddev = 0.02};
    for (int64_t b = 0; b < shape.blocks; ++b) {
      const std::string prefix = absl::StrCat("blocks.", b, ".encoding.");
      blocks_.push_back(
          {.content_bias = layout.Add(prefix + "content_bias", {heads_, head_size_}, normal),
           .position_bias = layout.Add(prefix + "position_bias", {heads_, head_size_}, normal),
           .projection = layout.Add(prefix + "projection", {d_model_, heads_ * head_size_},
                                    HaikuLinear(d_model_))});
    }
  }

  at::Tensor LogitTerm(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                       const at::Tensor& queries, const at::Tensor& keys) const override {
    const Block& ids = blocks_[static_cast<size_t>(block)];
    const double scale = 1 / std::sqrt(static_cast<double>(head_size_));
    // [P, 1, H, 1, dh]
    const at::Tensor u = parameters[ids.content_bias].unsqueeze(1).unsqueeze(3).mul(scale);
    const at::Tensor v = parameters[ids.position_bias].unsqueeze(1).unsqueeze(3);
    const at::Tensor content =
        MatrixProduct(u, Widened(keys).transpose(-1, -2));         // [P, B, H, 1, n]
    const at::Tensor biased = Widened(queries).add(v).mul(scale);  // [P, B, H, n, dh]
    const at::Tensor& projection = parameters[ids.projection];
    const at::Tensor position = toeplitz_ ? ToeplitzTerm(biased, positions, projection)
                                          : DifferenceTerm(biased, positions, projection);
    return position.add(content);
  }

  AttentionTerms Terms(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                       int64_t first, int64_t count) const override {
    const Block& ids = blocks_[static_cast<size_t>(block)];
    const at::Tensor& projection = parameters[ids.projection];
    const int64_t members = positions.size(0), n = positions.size(1);
    const at::Tensor sinusoids =
        DistanceSinusoids(positions, projection.scalar_type(), first, count);
    const std::vector<int64_t> shape =
        toeplitz_ ? std::vector<int64_t>{members, heads_, head_size_, 2 * n - 1}
                  : std::vector<int64_t>{members, heads_, head_size_, count, n};
    AttentionTerms terms = {.relative = Project(projection, sinusoids, shape),
                            .toeplitz = toeplitz_,
                            .content_bias = parameters[ids.content_bias],
                            .position_bias = parameters[ids.position_bias]};
    // A GPU has memory for R of a training step in every block.
    if (!toeplitz_ && (positions.is_cpu() || terms.relative.numel() > kMostKept)) {
      terms.remake_relative = [projection = projection.detach(), sinusoids, shape] {
        return Project(projection, sinusoids, shape);
      };
    }
    return terms;
  }

  AttentionTerms TermsWithoutR(const ParameterSet& parameters, int64_t block,
                               const at::Tensor& positions) const override {
    if (!differences_) return Terms(parameters, block, positions, 0, positions.size(1));
    const Block& ids = blocks_[static_cast<size_t>(block)];
    const at::Tensor& projection = parameters[ids.projection];
    const at::ScalarType dtype = projection.scalar_type();
    return {.content_bias = parameters[ids.content_bias],
            .position_bias = parameters[ids.position_bias],
            .sinusoids = own_sinusoids_.Get(positions, dtype,
                                            [&] { return Sinusoids(positions, d_model_, dtype); }),
            .projection = projection};
  }

  int64_t RowsAtOnce(int64_t members, int64_t tokens) const override {
    if (toeplitz_) return tokens;
    return std::clamp<int64_t>(kMaxElements / (members * tokens * d_model_), 1, tokens);
  }

 private:
  struct Block {
    ParameterId content_bias;   // u
    ParameterId position_bias;  // v
    ParameterId projection;     // W_R
  };

  // (PE W)^T = W^T PE^T, [P, d, places], viewed as `shape`: the features of a head are adjacent.
  static at::Tensor Project(const at::Tensor& projection, const at::Tensor& sinusoids,
                            at::IntArrayRef shape) {
    const at::Tensor relative =
        projection.size(0) == 1
            ? MatrixProduct(projection.squeeze(0).t(), sinusoids.squeeze(0).t())
            : MatrixProduct(projection.transpose(1, 2), sinusoids.transpose(1, 2));
    return relative.view(shape);
  }

  // PE of the distances in R for rows first .. first + count - 1, [P, places, d].
  at::Tensor DistanceSinusoids(const at::Tensor& positions, at::ScalarType dtype, int64_t first,
                               int64_t count) const {
    const auto make = [&] {
      if (toeplitz_) return Sinusoids(Distances(positions), d_model_, dtype);
      return SinusoidsOfDifferences(Sinusoids(positions, d_model_, dtype), first, count)
          .flatten(1, 2);
    };
    return count == positions.size(1) ? sinusoids_.Get(positions, dtype, make) : make();
  }

  // Position term if the distance depends only on j - i: one product with all 2n - 1 distances,
  // then row i is shifted by i places.
  at::Tensor ToeplitzTerm(const at::Tensor& biased, const at::Tensor& positions,
                          const at::Tensor& projection) const {
    const int64_t members = biased.size(0), sequences = biased.size(1), n = biased.size(3);
    const at::Tensor relative =
        MatrixProduct(Sinusoids(Distances(positions), d_model_, projection.scalar_type()),
                      projection)
            .view({members, 2 * n - 1, heads_, head_size_})
            .permute({0, 2, 3, 1})
            .reshape({members * heads_, head_size_, 2 * n - 1});
    const at::Tensor by_distance = MatrixProduct(
        biased.permute({0, 2, 1, 3, 4}).reshape({members * heads_, sequences * n, head_size_}),
        relative);
    return ShiftedRows(by_distance.view({members * heads_ * sequences, n, 2 * n - 1}))
        .view({members, heads_, sequences, n, n})
        .transpose(1, 2);
  }

  // Distances of tokens that are j - i = -(n - 1) .. n - 1 places apart, [P, 2n - 1].
  at::Tensor Distances(const at::Tensor& positions) const {
    // Consecutive positions may begin elsewhere than at 0, the first of offsets.
    const at::Tensor apart = positions.sub(positions.narrow(1, 0, 1));
    const at::Tensor before = apart.narrow(1, 1, positions.size(1) - 1).flip(1).neg();
    if (clamped_to_ == 0) return at::cat({before, apart}, 1);
    return at::cat({before.add(clamped_to_), at::full_like(apart, clamped_to_ - 1)}, 1);
  }

  // The logits' position part for distances p_j - p_i.
  at::Tensor DifferenceTerm(const at::Tensor& biased, const at::Tensor& positions,
                            const at::Tensor& projection) const {
    const int64_t n = biased.size(3);
    // A training step keeps R of all rows; a GPU need not make it in parts.
    const bool in_parts = biased.is_cpu() || !c10::GradMode::is_enabled();
    return DifferenceLogits(biased, Sinusoids(positions, d_model_, projection.scalar_type()),
                            projection, in_parts ? RowsAtOnce(biased.size(0), n) : n);
  }

  // True if the distance is p_j - p_i.
  bool differences_;
  // True if it depends only on j - i.
  bool toeplitz_;
  // L if the table is clamped, else 0.
  int64_t clamped_to_;
  int64_t heads_;
  int64_t d_model_;
  int64_t head_size_;
  std::vector<Block> blocks_;
  // Cache of DistanceSinusoids for all rows.
  mutable MadeOfPositions sinusoids_;
  // Of the positions themselves.
  mutable MadeOfPositions own_sinusoids_;
};

}  // namespace

std::unique_ptr<Encoding> CreateRelative(const catalogue::Parameters& parameters,
                                         const EncodingShape& shape, ParameterLayout& layout) {
  return std::make_unique<Relative>(parameters, shape, layout);
}

}  // namespace lengthwise::models
