// Compares formulas with the built-in encodings that they spell out.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "ATen/ops/arange.h"
#include "ATen/ops/isfinite.h"
#include "ATen/ops/tensor.h"
#include "ATen/ops/zeros.h"
#include "catalogue/testing/resolved.h"
#include "gtest/gtest.h"
#include "models/encodings/catalogue.h"
#include "models/encodings/encoding.h"
#include "models/parameters/arena.h"

namespace lengthwise::models {
namespace {

constexpr int64_t kHeads = 4, kWidth = 24, kBlocks = 2;

at::Tensor Numbers(at::IntArrayRef shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::arange(count, at::kDouble).mul(12.9898).sin().view(shape);
}

catalogue::Parameters FormulaOf(const std::string& place, const std::string& text,
                                const std::string& parameters = "") {
  catalogue::Parameters given;
  given.Set(place, text);
  given.Set("parameters", parameters);
  return given;
}

// An encoding whose parameters have fixed pseudo-random values: equal for all encodings with
// equally many parameters.
class Subject {
 public:
  Subject(const std::string& name, const catalogue::Parameters& given, bool causal,
          at::ScalarType dtype, int64_t members = 1)
      : encoding_(CreateEncoding(
                      name, catalogue::Resolved(EncodingEntries(), name, given),
                      {.blocks = kBlocks, .heads = kHeads, .d_model = kWidth, .causal = causal},
                      layout_)
                      .value()) {
    layout_.Add("other", {1}, {.kind = Initializer::Kind::kZeros});
    arena_ = std::make_unique<ParameterArena>(layout_, members, dtype, at::kCPU);
    arena_->parameters().copy_(Numbers(arena_->parameters().sizes()));
  }

  ParameterSet parameters() const { return arena_->Members(0, arena_->pack_size()); }
  const Encoding& encoding() const { return *encoding_; }
  ParameterArena& arena() { return *arena_; }

  struct Result {
    at::Tensor logits, embedding, queries, gradients;
  };

  // Runs the encoding at positions [P, n], forward and backward.
  Result At(const at::Tensor& positions, int64_t block = 0) {
    const at::ScalarType type = arena_->parameters().scalar_type();
    const int64_t n = positions.size(1);
    at::Tensor queries =
        Numbers({positions.size(0), 3, kHeads, n, kWidth / kHeads}).to(type).detach();
    at::Tensor keys = queries.mul(0.5);
    arena_->gradients().zero_();
    encoding_->Rotate(parameters(), block, positions, queries, keys);
    Result result = {.logits = encoding_->LogitTerm(parameters(), block, positions, queries, keys),
                     .embedding = encoding_->EmbeddingTerm(parameters(), block, positions),
                     .queries = queries};
    for (const at::Tensor& part : {result.logits, result.embedding, result.queries}) {
      if (!part.defined() || !part.requires_grad()) continue;
      part.mul(Numbers(part.sizes()).to(type)).sum().backward();
    }
    result.gradients = arena_->gradients().clone();
    return result;
  }

 private:
  ParameterLayout layout_;
  std::unique_ptr<Encoding> encoding_;
  std::unique_ptr<ParameterArena> arena_;
};

at::Tensor Positions() {
  return at::tensor(std::vector<int64_t>{0, 1, 7, 8, 9, 40, 130, 135, 2047}).view({1, -1});
}

void ExpectClose(const at::Tensor& actual, const at::Tensor& expected, double tolerance) {
  ASSERT_EQ(actual.defined(), expected.defined());
  if (!actual.defined()) return;
  const at::Tensor wide = actual.detach().to(at::kDouble).expand(expected.sizes());
  EXPECT_LE(wide.sub(expected.detach().to(at::kDouble)).abs().max().item<double>(), tolerance);
}

struct Twin {
  std::string name;
  catalogue::Parameters formula;
  bool causal = false;
};

std::vector<Twin> Twins() {
  const std::string exact = "abs(q - k) < 8, abs(q - k), ";
  return {
      {"alibi", FormulaOf("logits", "-2^(-8 * (h + 1) / H) * abs(q - k)")},
      {"kerple_log", FormulaOf("logits", "-max(r1, 0.01) * log1p(max(r2, 0.01) * abs(q - k))",
                               "r1 per head = 1; r2 per head = 1")},
      {"t5", FormulaOf("logits",
                       "t[where(k > q, 16, 0) + where(" + exact +
                           "min(15, 8 + floor(8 * log(abs(q - k) / 8) / log(16) + 1e-9)))]",
                       "t[32] per head = 0")},
      {"t5",
       FormulaOf("logits",
                 "t[where(q - k < 16, max(q - k, 0), min(31, 16 + floor(16 * log((q - k) / 16) / "
                 "log(8) + 1e-9)))]",
                 "t[32] per head = 0"),
       /*causal=*/true},
      {"sin_cos",
       FormulaOf("embedding",
                 "where(c < d / 2, sin(p * 10000^(-2 * c / d)), cos(p * 10000^(-2 * (c - "
                 "d / 2) / d)))")},
      {"rope", FormulaOf("angle", "p * 10000^(-2 * i / d)")},
  };
}

TEST(FormulaTest, AgreesWithTheBuiltInEncodings) {
  for (const Twin& twin : Twins()) {
    for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(twin.name + (twin.causal ? ", causal" : ""));
      Subject built_in(twin.name, {}, twin.causal, type);
      Subject formula("formula", twin.formula, twin.causal, type);
      const Subject::Result expected = built_in.At(Positions()), actual = formula.At(Positions());
      ExpectClose(actual.logits, expected.logits, 1e-6);
      ExpectClose(actual.embedding, expected.embedding, 1e-6);
      ExpectClose(actual.queries, expected.queries, 1e-6);
      const double largest = expected.gradients.abs().max().item<double>();
      ExpectClose(actual.gradients, expected.gradients, 1e-6 * std::max(1.0, largest));
    }
  }
}

// A formula in every place, with every kind of parameter.
catalogue::Parameters Everything() {
  catalogue::Parameters given = FormulaOf(
      "logits",
      "where(q == k, 0, a * log(b^2 * abs(q - k)) / (1 + exp(-b))) + t[min(abs(q - k), 3)]"
      " + sqrt(1 + a^2) * tanh(b) * sigmoid(a) - max(a, b) + min(a, 0.1 * q) + f * h",
      "a per head = 1; b per layer = 0.1; f fixed = 0.5; g per layer = 1; s = 0.5; "
      "t[4] per head ~ 0.1");
  given.Set("embedding", std::string("s * where(c < d / 2, sin(p * 1.1^-c), cos(s * p / 7))"));
  given.Set("angle", std::string("g * p * 100^(-2 * i / d)"));
  return given;
}

TEST(FormulaTest, GradientsMatchDifferenceQuotients) {
  Subject subject("formula", Everything(), false, at::kDouble);
  const at::Tensor positions = at::tensor(std::vector<int64_t>{0, 2, 3, 9}).view({1, 4});
  for (int64_t block = 0; block < kBlocks; ++block) {
    const at::Tensor gradients = subject.At(positions, block).gradients;
    const auto sum = [&] {
      const Subject::Result result = subject.At(positions, block);
      double total = 0;
      for (const at::Tensor& part : {result.logits, result.embedding, result.queries}) {
        total += part.detach().mul(Numbers(part.sizes())).sum().item<double>();
      }
      return total;
    };
    at::Tensor row = subject.arena().parameters()[0];
    for (const auto& slot : subject.arena().layout().slots()) {
      for (int64_t e = slot.offset; e < slot.offset + slot.size; ++e) {
        const double value = row[e].item<double>(), step = 1e-6;
        row[e].fill_(value + step);
        const double above = sum();
        row[e].fill_(value - step);
        const double below = sum();
        row[e].fill_(value);
        EXPECT_NEAR(gradients[0][e].item<double>(), (above - below) / (2 * step), 1e-6)
            << slot.name << ", block " << block;
      }
    }
  }
}

TEST(FormulaTest, UntakenBranchHasNoGradient) {
  for (const std::string formula :
       {"where(q == k, 0, a / abs(q - k))", "where(q == k, 0, a * log(abs(q - k)))",
        "where(q == k, 0, sqrt(a * abs(q - k)))", "where(q == k, 0, (a * abs(q - k))^-0.5)",
        "where(q > k, 0, where(q == k, 0, log(exp(a) * abs(q - k))))"}) {
    Subject subject("formula", FormulaOf("logits", formula, "a = 1"), false, at::kDouble);
    subject.arena().parameters().fill_(0.7);
    const Subject::Result result = subject.At(Positions());
    EXPECT_TRUE(at::isfinite(result.logits).all().item<bool>()) << formula;
    EXPECT_TRUE(at::isfinite(result.gradients).all().item<bool>()) << formula;
    EXPECT_GT(result.gradients.abs().max().item<double>(), 0) << formula;
  }
}

TEST(FormulaTest, NanIndexInUntakenBranchIsHarmless) {
  Subject subject("formula",
                  FormulaOf("logits", "where(q > k, t[log(q - k)], 0)", "t[3] per head = 1"), false,
                  at::kDouble);
  const Subject::Result result = subject.At(Positions());
  EXPECT_TRUE(at::isfinite(result.logits).all().item<bool>());
  EXPECT_TRUE(at::isfinite(result.gradients).all().item<bool>());
}

TEST(FormulaTest, PackMatchesItsMembers) {
  Subject pack("formula", Everything(), false, at::kDouble, /*members=*/2);
  const at::Tensor positions =
      at::tensor(std::vector<int64_t>{0, 2, 3, 9, 1, 4, 5, 30}).view({2, 4});
  const Subject::Result together = pack.At(positions, 1);
  for (int64_t member = 0; member < 2; ++member) {
    Subject alone("formula", Everything(), false, at::kDouble);
    alone.arena().parameters().copy_(pack.arena().parameters().narrow(0, member, 1));
    const Subject::Result one = alone.At(positions.narrow(0, member, 1), 1);
    ExpectClose(together.logits.narrow(0, member, 1), one.logits, 1e-12);
    ExpectClose(together.embedding.narrow(0, member, 1), one.embedding, 1e-12);
  }
}

TEST(FormulaTest, PartialRowsMatchTheWhole) {
  Subject subject("formula", FormulaOf("logits", "a * q - k / n + h", "a = 1"), false, at::kDouble);
  const at::Tensor whole =
      subject.encoding().Terms(subject.parameters(), 0, Positions(), 0, 9).additive;
  const at::Tensor part =
      subject.encoding().Terms(subject.parameters(), 0, Positions(), 2, 3).additive;
  ExpectClose(part, whole.narrow(2, 2, 3), 1e-12);
}

TEST(FormulaTest, StartsFromItsInitialValues) {
  ParameterLayout layout;
  const auto encoding = CreateEncoding(
      "formula",
      catalogue::Resolved(EncodingEntries(), "formula",
                          FormulaOf("logits", "a + b + t[h] + u[q] * s",
                                    "a per head = 1, 2, 3, 4; b per layer = 7, 8; s fixed = 2; "
                                    "t[2] per head = 5, 6; u[3] ~ 0.5")),
      {.blocks = kBlocks, .heads = kHeads, .d_model = kWidth}, layout);
  ASSERT_TRUE(encoding.ok());
  std::vector<double> row(static_cast<size_t>(layout.row_size()));
  InitializeRow(layout, 1, absl::MakeSpan(row));
  const auto values = [&](size_t slot) {
    const auto first = row.begin() + layout.slots()[slot].offset;
    return std::vector<double>(first, first + layout.slots()[slot].size);
  };
  ASSERT_EQ(layout.slots().size(), 4U);
  EXPECT_EQ(layout.slots()[0].name, "encoding.a");
  EXPECT_EQ(values(0), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(values(1), (std::vector<double>{7, 8}));
  EXPECT_EQ(values(2), (std::vector<double>{5, 5, 5, 5, 6, 6, 6, 6}));
  EXPECT_NE(values(3)[0], values(3)[1]);
}

}  // namespace
}  // namespace lengthwise::models
