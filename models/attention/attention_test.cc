#include "models/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ATen/ops/arange.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/sin.h"
#include "ATen/ops/stack.h"
#include "absl/strings/str_cat.h"
#include "c10/core/GradMode.h"
#include "gtest/gtest.h"
#include "models/encodings/catalogue.h"
#include "models/encodings/causal.h"
#include "models/encodings/encoding.h"
#include "models/encodings/testing/test_formula.h"
#include "models/layers/kernel_calls.h"
#include "models/layers/testing/far_device.h"
#include "models/parameters/arena.h"

namespace lengthwise::models {
namespace {

constexpr int64_t kHeads = 2, kWidth = 32;

// Pseudo-random numbers in [-2, 2].
at::Tensor Numbers(at::IntArrayRef shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::arange(count, at::kDouble).mul(12.9898).sin().mul(2).to(at::kFloat).view(shape);
}

struct Variant {
  std::string encoding;
  // Value of the encoding's parameter, if it has one.
  std::string distances;
  bool causal = false;
};

std::vector<Variant> Variants() {
  std::vector<Variant> variants;
  for (const EncodingEntry* entry : EncodingEntries()) {
    variants.push_back({.encoding = entry->name});
    for (const auto& parameter : entry->parameters) {
      if (parameter.name == "distances") variants.push_back({entry->name, "offsets"});
    }
  }
  // Each kind of term together with the mask.
  for (const std::string encoding : {"none", "alibi", "shaw", "rope", "relative", "fire"}) {
    variants.push_back({.encoding = encoding, .causal = true});
  }
  return variants;
}

// An encoding with parameters of one type, at drawn positions.
class Attention {
 public:
  Attention(const Variant& variant, int64_t members, int64_t tokens, at::ScalarType dtype,
            at::Device device = at::kCPU) {
    for (const EncodingEntry* entry : EncodingEntries()) {
      if (entry->name != variant.encoding) continue;
      catalogue::Parameters given;
      for (const auto& parameter : entry->parameters) {
        if (parameter.name == "randomized") given.Set("randomized", true);
      }
      if (!variant.distances.empty()) given.Set("distances", variant.distances);
      GiveFormula(entry->name, given);
      std::vector<catalogue::Problem> problems;
      encoding_ = CreateEncoding(entry->name, catalogue::Resolve(*entry, given, "", problems),
                                 {.blocks = 1, .heads = kHeads, .d_model = kWidth}, layout_)
                      .value();
    }
    if (variant.causal) encoding_ = MakeCausal(std::move(encoding_));
    // Gives the arena a parameter, and so a type, even if the encoding has none.
    layout_.Add("other", {1}, {.kind = Initializer::Kind::kZeros});
    arena_ = std::make_unique<ParameterArena>(layout_, members, dtype, device);
    // No parameter is 0: a factor of 0 would hide errors in the other factor.
    arena_->parameters().copy_(Numbers(arena_->parameters().sizes()).add(0.3));
    const at::Tensor places = at::arange(tokens, at::kLong);
    std::vector<at::Tensor> positions;
    for (int64_t p = 0; p < members; ++p) positions.push_back(places.mul(p + 3).add(5));
    positions_ = at::stack(positions).to(device);
  }

  at::Tensor Forward(const at::Tensor& qkv, AttentionMaps* maps = nullptr) const {
    return Attend(*encoding_, arena_->Members(0, positions_.size(0)), 0, kHeads, positions_, qkv,
                  maps);
  }

  AttentionTerms Terms() const {
    return encoding_->Terms(arena_->Members(0, positions_.size(0)), 0, positions_, 0,
                            positions_.size(1));
  }

  AttentionTerms TermsWithoutR() const {
    return encoding_->TermsWithoutR(arena_->Members(0, positions_.size(0)), 0, positions_);
  }

  struct Result {
    at::Tensor output, qkv_gradient, parameter_gradients;
  };

  Result Differentiate(const at::Tensor& given_qkv) const {
    const at::Tensor qkv =
        given_qkv.to(arena_->parameters().options()).detach().clone().requires_grad_(true);
    arena_->gradients().zero_();
    const at::Tensor output = Forward(qkv);
    output.mul(Numbers(output.sizes()).to(output.options())).sum().backward();
    return {output.detach().cpu(), qkv.grad().cpu(), arena_->gradients().to(at::kCPU)};
  }

 private:
  ParameterLayout layout_;
  std::unique_ptr<Encoding> encoding_;
  std::unique_ptr<ParameterArena> arena_;
  at::Tensor positions_;
};

double Largest(const at::Tensor& tensor) { return tensor.abs().max().item<double>(); }

void ExpectClose(const at::Tensor& actual, const at::Tensor& expected, const char* name,
                 double relative_to = 0) {
  const double largest = std::max(Largest(expected), relative_to);
  const double error = actual.to(at::kDouble).sub(expected).abs().max().item<double>();
  EXPECT_LE(error, 1e-5 * largest) << name;
}

TEST(CausalTest, TokenDoesNotSeeLaterTokens) {
  constexpr int64_t kTokens = 5;
  const Attention causal({.encoding = "shaw", .causal = true}, 1, kTokens, at::kFloat);
  const at::Tensor qkv = Numbers({1, 2, kTokens, 3 * kWidth});
  const at::Tensor before = causal.Forward(qkv);
  at::Tensor changed = qkv.clone();
  changed.select(2, 3).add_(1);
  const at::Tensor after = causal.Forward(changed);
  EXPECT_TRUE(at::equal(before.narrow(2, 0, 3), after.narrow(2, 0, 3)));
  EXPECT_FALSE(at::equal(before.select(2, 4), after.select(2, 4)));
}

// The backward pass recomputes R. Otherwise a step would keep one R per block.
TEST(FusedAttentionTest, ReleasesTheRelativeTerm) {
  const Attention attention({.encoding = "relative"}, 1, 13, at::kFloat);
  const at::Tensor qkv = Numbers({1, 2, 13, 3 * kWidth}).requires_grad_(true);
  AttentionTerms terms = attention.Terms();
  ASSERT_FALSE(terms.toeplitz);
  const auto relative = terms.relative.storage().getWeakStorageImpl();
  const at::Tensor output = FusedAttention(qkv, kHeads, terms);
  EXPECT_FALSE(relative.expired());
  terms = {};
  EXPECT_TRUE(relative.expired());
  output.sum().backward();
  EXPECT_TRUE(qkv.grad().defined());
}

// Of the kernels on tensor cores, which no CPU runs: the emulator tests what they make of terms.
TEST(TensorCoresTest, EncodingsHaveTermsForThem) {
  const auto have_kernels = [](const Variant& variant) {
    return HaveTensorKernels(Attention(variant, 2, 13, at::kFloat).TermsWithoutR());
  };
  for (const std::string encoding :
       {"none", "alibi", "fire", "kerple_log", "t5", "rope", "relative"}) {
    SCOPED_TRACE(encoding);
    EXPECT_TRUE(have_kernels({.encoding = encoding}));
    EXPECT_FALSE(have_kernels({.encoding = encoding, .causal = true}));
  }
  EXPECT_FALSE(have_kernels({.encoding = "relative", .distances = "offsets"}));
}

TEST(TensorCoresTest, SinusoidsOfTokensMakeR) {
  const Attention attention({.encoding = "relative"}, 2, 13, at::kDouble);
  const AttentionTerms terms = attention.TermsWithoutR();
  ASSERT_FALSE(terms.relative.defined());
  // Of the keys and of the queries.
  const auto keys = terms.sinusoids.unsqueeze(1).chunk(2, 3);
  const auto queries = terms.sinusoids.unsqueeze(2).chunk(2, 3);
  const at::Tensor sines = keys[0].mul(queries[1]).sub(keys[1].mul(queries[0]));
  const at::Tensor cosines = keys[1].mul(queries[1]).add(keys[0].mul(queries[0]));
  const at::Tensor relative =
      at::cat({sines, cosines}, 3).matmul(terms.projection.detach().unsqueeze(1));
  ExpectClose(relative.unflatten(3, {kHeads, kWidth / kHeads}).permute({0, 3, 4, 1, 2}),
              attention.Terms().relative.detach(), "R");
}

class AttendTest : public testing::TestWithParam<Variant> {};

// Doubles use the plain operators, floats the fused kernels.
TEST_P(AttendTest, FusedKernelsMatchPlainOperatorsInDouble) {
  for (const int64_t tokens : {1, 13}) {
    SCOPED_TRACE(absl::StrCat(tokens, " tokens"));
    const at::Tensor qkv = Numbers({2, 35, tokens, 3 * kWidth});
    const auto fused = Attention(GetParam(), 2, tokens, at::kFloat).Differentiate(qkv);
    const auto plain = Attention(GetParam(), 2, tokens, at::kDouble).Differentiate(qkv);
    ExpectClose(fused.output, plain.output, "output");
    if (tokens == 1) continue;  // all other gradients are 0
    ExpectClose(fused.qkv_gradient, plain.qkv_gradient, "gradient of queries, keys and values");
    // The gradients of a row's logits add up to 0. Gradients of parameters that act almost alike on
    // all keys are therefore small differences of numbers some ten times as large as the queries'
    // gradients.
    ExpectClose(fused.parameter_gradients, plain.parameter_gradients, "gradient of parameters",
                10 * Largest(plain.qkv_gradient));
  }
}

// Other devices train by other operators.
TEST_P(AttendTest, OtherDevicesMatchTheCpuInDouble) {
  const at::Tensor qkv = Numbers({2, 3, 13, 3 * kWidth}).to(at::kDouble);
  const Attention there(GetParam(), 2, 13, at::kDouble, FarDevice());
  const Attention here(GetParam(), 2, 13, at::kDouble);
  const auto actual = there.Differentiate(qkv), expected = here.Differentiate(qkv);
  ExpectClose(actual.output, expected.output, "output");
  ExpectClose(actual.qkv_gradient, expected.qkv_gradient, "gradient of queries, keys and values");
  ExpectClose(actual.parameter_gradients, expected.parameter_gradients, "gradient of parameters",
              10 * Largest(expected.qkv_gradient));
  AttentionMaps actual_maps, expected_maps;
  there.Forward(qkv.to(FarDevice()), &actual_maps);
  here.Forward(qkv, &expected_maps);
  ExpectClose(actual_maps.probabilities.detach().cpu(), expected_maps.probabilities.detach(),
              "attention maps");
}

TEST_P(AttendTest, BitsDoNotDependOnThreads) {
  const at::Tensor qkv = Numbers({1, 70, 11, 3 * kWidth});
  const Attention attention(GetParam(), 1, 11, at::kFloat);
  SetThreads(1);
  const auto one = attention.Differentiate(qkv);
  SetThreads(2);
  const auto two = attention.Differentiate(qkv);
  EXPECT_TRUE(at::equal(one.output, two.output));
  EXPECT_TRUE(at::equal(one.qkv_gradient, two.qkv_gradient));
  EXPECT_TRUE(at::equal(one.parameter_gradients, two.parameter_gradients));
}

// Without gradients, terms of a long sequence are computed for some rows at a time.
TEST_P(AttendTest, LongSequencesMatchWithoutGradients) {
  const int64_t tokens = 400;
  const at::Tensor qkv = Numbers({1, 2, tokens, 3 * kWidth});
  const Attention attention(GetParam(), 1, tokens, at::kFloat);
  const at::Tensor with_gradients = attention.Forward(qkv).detach();
  const c10::NoGradGuard no_gradients;
  ExpectClose(attention.Forward(qkv), with_gradients.to(at::kDouble), "output");
}

INSTANTIATE_TEST_SUITE_P(Encodings, AttendTest, testing::ValuesIn(Variants()),
                         [](const testing::TestParamInfo<Variant>& info) {
                           return absl::StrCat(info.param.causal ? "causal_" : "",
                                               info.param.encoding, info.param.distances);
                         });

}  // namespace
}  // namespace lengthwise::models
