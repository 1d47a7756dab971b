// The encoding `formula`, written in a specification (formula_expression.h): additions to each
// head's logits, additions to the embeddings, and angles that rotate queries and keys.
//
// A learned parameter `a` is "encoding.a" in the layout, one for all layers; fixed parameters are
// not in the layout. The entry's check has refused wrong formulas; here they are skipped.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "c10/core/ScalarType.h"
#include "models/encodings/encoding.h"
#include "models/encodings/formula_definition.h"
#include "models/encodings/formula_operators.h"
#include "models/encodings/kept_tensors.h"
#include "models/encodings/sinusoids.h"
#include "models/layers/layers.h"

namespace lengthwise::models {
namespace {

using Per = FormulaParameter::Per;

// Memory bound of RowsAtOnce, in numbers.
constexpr int64_t kMaxHeadElements = int64_t{1} << 25;

// A formula's intermediate value: a C++ number while it is constant, otherwise a tensor with axes
// [P, H, rows, columns], of size 1 along those it does not depend on. Tensors that depend on a
// learned parameter have the type of the pass; all others are double.
struct Term {
  at::Tensor tensor{};
  double number = 0;
  bool learned = false;

  bool is_number() const { return !tensor.defined(); }
};

// Storage of a declared parameter.
struct Stored {
  ParameterId id = 0;  // if learned
  // Values if fixed: double [1, H or L], or [1, N, 1, H or L] for a table.
  std::unique_ptr<Constant> constant{};
};

at::Tensor Full(double number, const at::Tensor& like) {
  return at::full({1, 1, 1, 1}, number, like.options().requires_grad(false));
}

// Looks up elements `index` (int64 [p, h, r, c]) of `table` [P, N, w], w = 1 or H. Returns [P, H,
// r, c].
at::Tensor Look(const at::Tensor& index, const at::Tensor& table) {
  const int64_t width = table.size(2);
  if (index.size(1) == 1) return Embed(index.squeeze(1), table).permute({0, 3, 1, 2});
  const at::Tensor rows =
      width == 1 ? index
                 : index.mul(width).add(at::arange(width, index.options()).view({1, width, 1, 1}));
  const at::Tensor found = Embed(rows.flatten(1, 2), table.flatten(1, 2).unsqueeze(2));
  return found.view({found.size(0), index.size(1), index.size(2), index.size(3)});
}

at::Tensor Apply(FormulaOp op, const at::Tensor& x, const at::Tensor& y) {
  return formula::Value(op, x, y).to(x.scalar_type());
}

// Applies `op` to a tensor and a number, in this order. Undefined if Apply must do it with two
// tensors.
at::Tensor WithNumber(FormulaOp op, const at::Tensor& x, double number) {
  switch (op) {
    case FormulaOp::kAdd:
      return x.add(number);
    case FormulaOp::kSubtract:
      return x.sub(number);
    case FormulaOp::kMultiply:
      return x.mul(number);
    case FormulaOp::kDivide:
      return x.div(number);
    case FormulaOp::kPower:
      return at::pow(x, number);
    default:
      return {};
  }
}

// True if the function or its derivative is not finite for some finite argument.
bool IsSingular(FormulaOp op) {
  return op == FormulaOp::kExp || op == FormulaOp::kLog || op == FormulaOp::kLog1p ||
         op == FormulaOp::kSqrt || op == FormulaOp::kDivide || op == FormulaOp::kPower;
}

// One expression with its parameters; evaluates to a tensor.
class Expression {
 public:
  // The references must outlive this object; `nodes` is moved in.
  Expression(FormulaNodes nodes, const std::vector<FormulaParameter>& declared,
             const std::vector<Stored>& stored)
      : nodes_(std::move(nodes)), declared_(declared), stored_(stored) {}

  bool learned() const { return nodes_.back().learned; }
  const FormulaNodes& nodes() const { return nodes_; }
  bool IsOfLayers() const { return UsesParameter(nodes_, declared_, Per::kLayer); }

  // Value for these arguments, in the order of the expression's FormulaPlace: broadcastable to [P,
  // H, rows, columns]; of `type` if learned(), else double.
  at::Tensor Make(const std::vector<Term>& arguments, const ParameterSet& parameters,
                  at::ScalarType type, int64_t layer, const at::Tensor& positions) const {
    Pass pass{.arguments = arguments,
              .parameters = parameters,
              .type = type,
              .layer = layer,
              .device = positions.device(),
              .made = std::vector<std::optional<Term>>(nodes_.size())};
    const Term result = Value(pass, nodes_.size() - 1, {});
    if (!result.is_number()) return result.tensor;
    return at::full({1, 1, 1, 1}, result.number, positions.options().dtype(at::kDouble));
  }

 private:
  struct Pass {
    const std::vector<Term>& arguments;
    const ParameterSet& parameters;
    at::ScalarType type;  // of values that depend on a learned parameter
    int64_t layer;
    at::Device device;
    std::vector<std::optional<Term>> made;  // by node
  };

  // Returns the node's value. where() computes both branches everywhere; in the branch not taken, a
  // gradient of 0 times an infinite derivative would be NaN. `guard`, if defined, is true where the
  // branch is taken. Elsewhere, operands of learned nodes whose derivative could be infinite become
  // 1.
  Term Value(Pass& pass, size_t place, const at::Tensor& guard) const {
    const FormulaNode& node = nodes_[place];
    const bool shared = !guard.defined() || !node.learned;
    if (shared && pass.made[place]) return *pass.made[place];
    Term term = Compute(pass, node, node.learned ? guard : at::Tensor());
    term.learned = node.learned;
    if (shared) pass.made[place] = term;
    return term;
  }

  Term Compute(Pass& pass, const FormulaNode& node, const at::Tensor& guard) const {
    switch (node.op) {
      case FormulaOp::kNumber:
        return {.number = node.number};
      case FormulaOp::kArgument:
        return pass.arguments[node.index];
      case FormulaOp::kParameter:
        return Parameter(pass, node);
      case FormulaOp::kTable:
        return Element(pass, node);
      case FormulaOp::kWhere:
        return Where(pass, node, guard);
      default:
        break;
    }
    std::array<Term, 2> operands;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      operands[i] = Value(pass, node.operands[i], guard);
      Term& operand = operands[i];
      if (operand.is_number()) continue;
      if (node.learned && !operand.learned) operand.tensor = Learned(pass, operand);
      if (guard.defined() && (!operand.learned || IsSingular(node.op))) {
        operand.tensor = at::where(guard, operand.tensor, Full(1, operand.tensor));
      }
    }
    const Term &x = operands[0], &y = operands[1];
    if (x.is_number() && y.is_number()) {
      return {.number = formula::Value(node.op, x.number, y.number)};
    }
    if (node.operands.size() == 1) return {.tensor = Apply(node.op, x.tensor, x.tensor)};
    at::Tensor result;
    if (y.is_number()) {
      result = WithNumber(node.op, x.tensor, y.number);
    } else if (x.is_number()) {
      if (node.op == FormulaOp::kAdd || node.op == FormulaOp::kMultiply) {
        result = WithNumber(node.op, y.tensor, x.number);
      } else if (node.op == FormulaOp::kPower) {
        result = at::pow(x.number, y.tensor);
      }
    }
    if (result.defined()) return {.tensor = result};
    return {.tensor = Apply(node.op, x.is_number() ? Full(x.number, y.tensor) : x.tensor,
                            y.is_number() ? Full(y.number, x.tensor) : y.tensor)};
  }

  Term Where(Pass& pass, const FormulaNode& node, const at::Tensor& guard) const {
    const Term condition = Value(pass, node.operands[0], guard);
    if (condition.is_number()) {
      Term chosen = Value(pass, node.operands[condition.number != 0 ? 1 : 2], guard);
      if (node.learned && !chosen.learned && !chosen.is_number()) {
        chosen.tensor = Learned(pass, chosen);
      }
      return chosen;
    }
    const at::Tensor holds = condition.tensor.ne(0);
    const auto branch = [&](size_t operand, const at::Tensor& here) {
      const bool learned = nodes_[node.operands[operand]].learned;
      const at::Tensor counts = !learned          ? at::Tensor()
                                : guard.defined() ? guard.logical_and(here)
                                                  : here;
      const Term term = Value(pass, node.operands[operand], counts);
      if (term.is_number()) {
        const at::TensorOptions type = condition.tensor.options().requires_grad(false).dtype(
            node.learned ? pass.type : at::kDouble);
        return at::full({1, 1, 1, 1}, term.number, type);
      }
      return node.learned && !term.learned ? Learned(pass, term) : term.tensor;
    };
    return {.tensor = at::where(holds, branch(1, holds), branch(2, holds.logical_not()))};
  }

  // Converts a value that does not depend on learned parameters to the type of those that do.
  static at::Tensor Learned(const Pass& pass, const Term& term) {
    return term.tensor.to(pass.type);
  }

  // A parameter's values for the layer: [P, 1 or H], or [P, N, 1 or H] for a table.
  at::Tensor Values(const Pass& pass, const FormulaNode& node) const {
    const FormulaParameter& declared = declared_[node.index];
    const Stored& stored = stored_[node.index];
    const at::Tensor values = declared.fixed ? stored.constant->On(pass.device)
                                             : pass.parameters[stored.id].to(pass.type);
    return declared.per == Per::kLayer ? values.narrow(-1, pass.layer, 1) : values;
  }

  Term Parameter(const Pass& pass, const FormulaNode& node) const {
    const FormulaParameter& declared = declared_[node.index];
    if (declared.fixed && declared.initial.size() == 1) return {.number = declared.initial[0]};
    return {.tensor = Values(pass, node).unsqueeze(2).unsqueeze(3)};
  }

  Term Element(Pass& pass, const FormulaNode& node) const {
    const Term place = Value(pass, node.operands[0], {});
    const at::Tensor table = Values(pass, node);
    const at::Tensor index = place.is_number()
                                 ? at::full({1, 1, 1, 1}, place.number,
                                            table.options().requires_grad(false).dtype(at::kDouble))
                                 : place.tensor;
    const auto last = static_cast<double>(declared_[node.index].size - 1);
    return {.tensor = Look(index.floor().nan_to_num(0).clamp(0, last).to(at::kLong), table)};
  }

  const FormulaNodes nodes_;
  const std::vector<FormulaParameter>& declared_;
  const std::vector<Stored>& stored_;
};

class Formula : public Encoding {
 public:
  Formula(FormulaDefinition definition, const EncodingShape& shape, ParameterLayout& layout)
      : declared_(std::move(definition.parameters)),
        heads_(shape.heads),
        d_model_(shape.d_model),
        head_size_(shape.HeadSize()),
        causal_(shape.causal) {
    for (const FormulaParameter& parameter : declared_) {
      stored_.push_back(Store(parameter, shape, layout));
    }
    const auto take = [&](std::optional<FormulaNodes>& nodes, std::optional<Expression>& to) {
      if (nodes) to.emplace(*std::move(nodes), declared_, stored_);
    };
    take(definition.logits, logits_);
    take(definition.embedding, embedding_);
    take(definition.angle, angle_);
    take(definition.scale, scale_);
    take(definition.magnitude, magnitude_);
  }

  at::Tensor EmbeddingTerm(const ParameterSet& parameters, int64_t block,
                           const at::Tensor& positions) const override {
    if (!embedding_) return {};
    const at::ScalarType type = parameters[0].scalar_type();
    const auto make = [&] {
      return Columns(*embedding_, parameters, block, positions, d_model_, d_model_)
          .to(type)
          .unsqueeze(1);
    };
    return embedding_->learned() || embedding_->IsOfLayers()
               ? make()
               : made_embedding_.Get(positions, type, make);
  }

  at::Tensor Rotation(const ParameterSet& parameters, int64_t block,
                      const at::Tensor& positions) const override {
    if (!angle_) return {};
    const at::ScalarType type = parameters[0].scalar_type();
    const int64_t pairs = head_size_ / 2;
    const auto make = [&] {
      const at::Tensor angles = Columns(*angle_, parameters, block, positions, pairs, head_size_);
      return at::cat({angles.sin(), angles.cos()}, -1).to(type);
    };
    return angle_->learned() || angle_->IsOfLayers() ? make()
                                                     : made_rotation_.Get(positions, type, make);
  }

  at::Tensor Bias(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                  int64_t first, int64_t count) const override {
    if (!logits_) return {};
    const at::ScalarType type = parameters[0].scalar_type();
    const int64_t n = positions.size(1);
    const auto make = [&] {
      const at::Tensor places = positions.to(at::kDouble);
      const at::Tensor heads = at::arange(heads_, places.options()).view({1, heads_, 1, 1});
      const at::Tensor bias =
          logits_->Make({{.tensor = places.narrow(1, first, count).unsqueeze(1).unsqueeze(3)},
                         {.tensor = places.unsqueeze(1).unsqueeze(1)},
                         {.tensor = heads},
                         {.number = static_cast<double>(heads_)},
                         {.number = static_cast<double>(n)}},
                        parameters, type, block, positions);
      const at::Tensor scaled =
          scale_ ? bias.mul(Scale(parameters, block, positions, first, count, n)) : bias;
      return scaled.to(type).expand({scaled.size(0), heads_, count, n});
    };
    // The cache holds all rows of an expression without per-layer parameters; nothing else matches
    // it.
    const bool whole = first == 0 && count == n && !logits_->IsOfLayers();
    return logits_->learned() || scale_ || !whole ? make() : made_bias_.Get(positions, type, make);
  }

  at::Tensor Scaled(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                    int64_t first, const at::Tensor& qkv) const override {
    if (!scale_ && !magnitude_) return qkv;
    const int64_t n = qkv.size(2), pairs = head_size_ / 2, width = heads_ * head_size_;
    const at::ScalarType type = c10::promoteTypes(qkv.scalar_type(), at::kFloat);
    at::Tensor q = qkv.narrow(3, 0, width), k = qkv.narrow(3, width, width);
    if (scale_) {
      const at::Tensor factors = Scale(parameters, block, positions, first, n, n);  // [P, H, n, 1]
      q = q.unflatten(3, {heads_, head_size_})
              .mul(factors.to(type).transpose(1, 2).unsqueeze(1))
              .flatten(3, 4);
    }
    if (magnitude_) {
      const at::Tensor factors =  // [P, 1, n, 1, pairs, 1]
          Columns(*magnitude_, parameters, block, positions, pairs, head_size_)
              .to(type)
              .unsqueeze(1)
              .unsqueeze(3)
              .unsqueeze(5);
      const auto by_pairs = [&](const at::Tensor& features) {
        return features.unflatten(3, {heads_, pairs, 2});
      };
      q = by_pairs(q).mul(factors).flatten(3, 5);
      k = by_pairs(k).div(factors).flatten(3, 5);
    }
    return at::cat({q, k, qkv.narrow(3, 2 * width, width)}, 3).to(qkv.scalar_type());
  }

  int64_t RowsAtOnce(int64_t members, int64_t tokens) const override {
    // Rotations need all rows at once.
    if (!logits_ || angle_) return tokens;
    // All nodes' values are alive until the last is computed: one double each, which counts twice,
    // and the result.
    const auto numbers = 2 * static_cast<int64_t>(logits_->nodes().size()) + 1;
    return std::clamp<int64_t>(kMaxHeadElements / (members * tokens * numbers * heads_), 1, tokens);
  }

  bool SameInEveryBlock() const override {
    const bool of_layers = logits_ && (logits_->IsOfLayers() || (scale_ && scale_->IsOfLayers()));
    return !of_layers && !(angle_ && angle_->IsOfLayers());
  }

 private:
  static Stored Store(const FormulaParameter& parameter, const EncodingShape& shape,
                      ParameterLayout& layout) {
    const int64_t width = parameter.per == Per::kHead    ? shape.heads
                          : parameter.per == Per::kLayer ? shape.blocks
                                                         : 1;
    std::vector<int64_t> size = {width};
    if (parameter.size > 0) size.insert(size.begin(), static_cast<int64_t>(parameter.size));
    const size_t count = std::max<size_t>(1, parameter.size) * static_cast<size_t>(width);
    std::vector<double> values;
    for (size_t i = 0; i < count; ++i) {
      const size_t place = parameter.size > 0 ? i / static_cast<size_t>(width) : i;
      values.push_back(parameter.initial[std::min(place, parameter.initial.size() - 1)]);
    }
    if (parameter.fixed) {
      size.insert(size.begin(), 1);
      return {.constant = std::make_unique<Constant>(at::tensor(values).view(size))};
    }
    Initializer initializer = {.kind = Initializer::Kind::kValues, .values = std::move(values)};
    if (parameter.stddev > 0) {
      initializer = {.kind = Initializer::Kind::kNormal, .stddev = parameter.stddev};
    }
    return {.id = layout.Add("encoding." + parameter.name, size, std::move(initializer))};
  }

  // Factors of the logits of queries first .. first + count - 1 of n, whose positions these are or
  // begin with: [P or 1, H or 1, count or 1, 1].
  at::Tensor Scale(const ParameterSet& parameters, int64_t block, const at::Tensor& positions,
                   int64_t first, int64_t count, int64_t n) const {
    const at::Tensor places = positions.to(at::kDouble).unsqueeze(1).unsqueeze(3);
    const at::Tensor rows = at::arange(first + 1, first + count + 1, places.options());
    return scale_->Make(
        {{.tensor = places.size(2) == count ? places : places.narrow(2, first, count)},
         {.tensor = at::arange(heads_, places.options()).view({1, heads_, 1, 1})},
         {.number = static_cast<double>(heads_)},
         causal_ ? Term{.tensor = rows.view({1, 1, count, 1})}
                 : Term{.number = static_cast<double>(n)}},
        parameters, parameters[0].scalar_type(), block, positions);
  }

  // Evaluates an expression of position, column and d: [P, n, columns] in double precision.
  static at::Tensor Columns(const Expression& expression, const ParameterSet& parameters,
                            int64_t block, const at::Tensor& positions, int64_t columns,
                            int64_t d) {
    const at::Tensor places = positions.to(at::kDouble).unsqueeze(1).unsqueeze(3);
    const at::Tensor value =
        expression.Make({{.tensor = places},
                         {.tensor = at::arange(columns, places.options()).view({1, 1, 1, columns})},
                         {.number = static_cast<double>(d)}},
                        parameters, at::kDouble, block, positions);
    return value.expand({std::max(value.size(0), positions.size(0)), 1, positions.size(1), columns})
        .squeeze(1);
  }

  const std::vector<FormulaParameter> declared_;
  std::vector<Stored> stored_;  // parallel to declared_
  int64_t heads_;
  int64_t d_model_;
  int64_t head_size_;
  bool causal_;
  std::optional<Expression> logits_, embedding_, angle_, scale_, magnitude_;
  // Caches of expressions without learned parameters.
  mutable MadeOfPositions made_bias_, made_embedding_, made_rotation_;
};

}  // namespace

std::unique_ptr<Encoding> CreateFormula(const catalogue::Parameters& parameters,
                                        const EncodingShape& shape, ParameterLayout& layout) {
  std::vector<catalogue::Problem> problems;
  FormulaDefinition definition = ReadFormula(parameters, "formula", problems);
  return std::make_unique<Formula>(std::move(definition), shape, layout);
}

}  // namespace lengthwise::models
