#include "models/encodings/formula_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace lengthwise::models {
namespace {

// Larger values count as infinite, because attention masks with -1e30.
constexpr double kLargest = 1e30;

bool IsFinite(double value) { return std::abs(value) <= kLargest; }

std::string Shown(double value) {
  if (std::isnan(value)) return "not a number";
  return value > 0 ? "infinite" : "minus infinite";
}

using Bounds = PositionPolicy::Bounds;

// At most `most` numbers whole steps after `first`, evenly spread, and `last` (alone if `most` is
// 1).
std::vector<double> Spread(double first, double last, int64_t most) {
  std::vector<double> spread;
  if (last < first) return spread;
  const auto steps = static_cast<int64_t>(std::ceil(last - first));
  const int64_t count = std::clamp<int64_t>(most, 1, steps + 1);
  for (int64_t i = 0; i + 1 < count; ++i) {
    spread.push_back(first + static_cast<double>(i * steps / (count - 1)));
  }
  spread.push_back(last);
  return spread;
}

// True if q and k occur only as q - k or k - q.
bool IsOfDifferences(const FormulaNodes& nodes) {
  const auto is_position = [&](size_t node) {
    return nodes[node].op == FormulaOp::kArgument && nodes[node].index < 2;
  };
  for (const FormulaNode& node : nodes) {
    const auto positions = absl::c_count_if(node.operands, is_position);
    if (positions == 0) continue;
    if (node.op != FormulaOp::kSubtract || positions != 2 ||
        nodes[node.operands[0]].index == nodes[node.operands[1]].index) {
      return false;
    }
  }
  return !is_position(nodes.size() - 1);
}

// Evaluates one expression at points, until one is not finite or the budget of `operations` node
// evaluations is spent.
class Check {
 public:
  Check(const FormulaDefinition& definition, const FormulaNodes& nodes, const FormulaPlace& place,
        const EncodingContext& context, const PositionPolicy& policy, int64_t operations,
        absl::string_view path, std::vector<catalogue::Problem>& problems)
      : nodes_(nodes),
        place_(place),
        longest_(context.longest_sequence),
        policy_(policy),
        path_(path),
        problems_(problems),
        evaluator_(nodes, definition.parameters),
        head_(static_cast<size_t>(absl::c_find(place.arguments, "h") - place.arguments.begin())),
        heads_(UsesArgument(nodes, head_) ||
                       UsesParameter(nodes, definition.parameters, FormulaParameter::Per::kHead)
                   ? std::max<int64_t>(1, context.heads)
                   : 1),
        layers_(UsesParameter(nodes, definition.parameters, FormulaParameter::Per::kLayer)
                    ? std::max<int64_t>(1, context.blocks)
                    : 1),
        left_(operations),
        most_(operations / (static_cast<int64_t>(nodes.size()) * heads_ * layers_)) {}

  // Number of points that the budget allows; each covers all heads and layers.
  int64_t most() const { return most_; }

  // Of the positions of `n` tokens. Drawn ones do not depend on n.
  Bounds BoundsOf(double n) const {
    return policy_.BoundsOf(policy_.drawn() ? longest_ : static_cast<int64_t>(n));
  }

  // Checks one point for all heads and layers; the head among the arguments is set here. Returns
  // false after the first problem and when the budget is spent.
  bool At(std::vector<double> arguments) {
    for (int64_t layer = 0; layer < layers_; ++layer) {
      for (int64_t head = 0; head < heads_; ++head) {
        left_ -= static_cast<int64_t>(nodes_.size());
        if (left_ < 0) return false;
        if (head_ < arguments.size()) arguments[head_] = static_cast<double>(head);
        const double value =
            evaluator_.At(arguments, static_cast<size_t>(head), static_cast<size_t>(layer));
        std::string mistake = evaluator_.NotFinite();
        if (mistake.empty() && value == 0 && place_.name == "magnitude") {
          mistake = "is 0, and keys are divided by it,";
        }
        if (mistake.empty()) continue;
        std::string where;
        for (size_t a = 0; a < place_.arguments.size(); ++a) {
          const std::string& name = place_.arguments[a];
          if (name == "H" || name == "d" || (name == "n" && !UsesArgument(nodes_, a))) continue;
          absl::StrAppend(&where, where.empty() ? "" : ", ", name, " = ", arguments[a]);
        }
        if (layers_ > 1) absl::StrAppend(&where, ", layer ", layer);
        problems_.push_back({.field = absl::StrCat(path_, ".", place_.name),
                             .description = absl::StrCat(mistake, " for ", where)});
        return false;
      }
    }
    return true;
  }

 private:
  const FormulaNodes& nodes_;
  const FormulaPlace& place_;
  const int64_t longest_;
  const PositionPolicy& policy_;
  const absl::string_view path_;
  std::vector<catalogue::Problem>& problems_;
  FormulaEvaluator evaluator_;
  const size_t head_;  // index of the argument h; beyond the arguments if there is none
  const int64_t heads_;
  const int64_t layers_;
  int64_t left_;
  const int64_t most_;
};

// Fewest tokens of a sequence; 0 if unknown.
int64_t ShortestOf(const EncodingContext& context) {
  return context.open_ended ? 1 : context.shortest_sequence;
}

void CheckLogits(Check& check, const FormulaNodes& nodes, const EncodingContext& context) {
  const auto heads = static_cast<double>(context.heads);
  const auto shortest = static_cast<double>(ShortestOf(context));
  const auto longest = static_cast<double>(context.longest_sequence);
  std::vector<double> lengths = {longest};
  int64_t most = check.most();
  // Half of the points go to the corners of every length, the rest to a grid of points at some
  // lengths.
  if (UsesArgument(nodes, 4) && shortest > 0) {
    for (const double n : Spread(shortest, longest, most / 8)) {
      const auto [lowest, highest] = check.BoundsOf(n);
      for (const double q : {lowest, highest}) {
        for (const double k : {lowest, highest}) {
          if (!check.At({q, k, 0, heads, n})) return;
        }
      }
    }
    lengths = Spread(shortest, longest, 16);
    most /= 2;
  }
  most /= static_cast<int64_t>(lengths.size());
  for (const double n : lengths) {
    const auto [lowest, highest] = check.BoundsOf(n);
    if (IsOfDifferences(nodes)) {
      for (const double distance : Spread(0, highest - lowest, most / 2)) {
        if (!check.At({0, distance, 0, heads, n}) || !check.At({distance, 0, 0, heads, n})) return;
      }
      continue;
    }
    const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(most)));
    const std::vector<double> places = Spread(lowest, highest, side);
    for (const double q : places) {
      for (const double k : places) {
        if (!check.At({q, k, 0, heads, n})) return;
      }
    }
  }
}

void CheckScale(Check& check, const EncodingContext& context) {
  const int64_t most = std::max<int64_t>(4, check.most() / 16);
  const auto longest = static_cast<double>(context.longest_sequence);
  const int64_t shortest = ShortestOf(context);
  for (const double n :
       Spread(shortest > 0 ? static_cast<double>(shortest) : longest, longest, 16)) {
    const auto [lowest, highest] = check.BoundsOf(n);
    for (const double q : Spread(lowest, highest, most)) {
      if (!check.At({q, 0, static_cast<double>(context.heads), n})) return;
    }
  }
}

// Checks an expression of position and feature, for `columns` features and sequences of `longest`
// tokens.
void CheckFeatures(Check& check, int64_t longest, int64_t columns, int64_t d) {
  const auto [lowest, highest] = check.BoundsOf(static_cast<double>(longest));
  const std::vector<double> features =
      Spread(0, static_cast<double>(columns - 1), std::max<int64_t>(4, check.most() / 64));
  const auto most = check.most() / static_cast<int64_t>(std::max<size_t>(1, features.size()));
  for (const double p : Spread(lowest, highest, std::max<int64_t>(4, most))) {
    for (const double c : features) {
      if (!check.At({p, c, static_cast<double>(d)})) return;
    }
  }
}

}  // namespace

FormulaEvaluator::FormulaEvaluator(const FormulaNodes& nodes,
                                   const std::vector<FormulaParameter>& parameters)
    : nodes_(nodes), parameters_(parameters), values_(nodes.size()) {}

double FormulaEvaluator::At(absl::Span<const double> arguments, size_t head, size_t layer) {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    Dual dual = Compute(nodes_[i], arguments, head, layer);
    if (nodes_[i].learned) dual.value = static_cast<float>(dual.value);
    values_[i] = dual;
  }
  return values_.back().value;
}

FormulaEvaluator::Dual FormulaEvaluator::Compute(const FormulaNode& node,
                                                 absl::Span<const double> arguments, size_t head,
                                                 size_t layer) const {
  const auto operand = [&](size_t i) -> const Dual& { return values_[node.operands[i]]; };
  switch (node.op) {
    case FormulaOp::kNumber:
      return {node.number};
    case FormulaOp::kArgument:
      return {arguments[node.index]};
    case FormulaOp::kParameter:
      return {ParameterValue(node, 0, head, layer), node.learned ? 1.0 : 0.0};
    case FormulaOp::kTable: {
      const double place = std::floor(operand(0).value);
      if (std::isnan(place)) return {place};
      const auto last = static_cast<double>(parameters_[node.index].size - 1);
      const auto element = static_cast<size_t>(std::clamp(place, 0.0, last));
      return {ParameterValue(node, element, head, layer), node.learned ? 1.0 : 0.0};
    }
    case FormulaOp::kWhere:
      return operand(operand(0).value != 0 ? 1 : 2);
    default:
      break;
  }
  const double x = operand(0).value, y = node.operands.size() > 1 ? operand(1).value : 0;
  Dual result = {formula::Value(node.op, x, y)};
  if (!node.learned) return result;
  const std::array<double, 2> slopes = formula::Derivatives(node.op, x, y, result.value);
  for (size_t i = 0; i < node.operands.size(); ++i) {
    if (nodes_[node.operands[i]].learned) result.slope += slopes[i] * operand(i).slope;
  }
  return result;
}

double FormulaEvaluator::ParameterValue(const FormulaNode& node, size_t element, size_t head,
                                        size_t layer) const {
  const FormulaParameter& parameter = parameters_[node.index];
  if (parameter.stddev > 0) return -parameter.stddev;
  const std::vector<double>& values = parameter.initial;
  if (values.size() == 1) return values[0];
  if (parameter.size > 0) return values[element];
  const size_t place = parameter.per == FormulaParameter::Per::kHead ? head : layer;
  return values[std::min(place, values.size() - 1)];
}

std::string FormulaEvaluator::NotFinite() const {
  const auto is_finite = [&](const Dual& dual) {
    return IsFinite(dual.value) && IsFinite(dual.slope);
  };
  size_t place = nodes_.size() - 1;
  if (is_finite(values_[place])) return "";
  // Follows non-finite operands from the result to the operation that first failed.
  for (bool found = true; found;) {
    found = false;
    const FormulaNode& node = nodes_[place];
    for (size_t i = 0; i < node.operands.size() && !found; ++i) {
      const size_t chosen = values_[node.operands[0]].value != 0 ? 1 : 2;
      if (node.op == FormulaOp::kWhere && i != 0 && i != chosen) continue;
      if (is_finite(values_[node.operands[i]])) continue;
      place = node.operands[i];
      found = true;
    }
  }
  const FormulaNode& node = nodes_[place];
  const bool is_value = !IsFinite(values_[place].value);
  const std::string what =
      node.operands.size() == 1 && node.op != FormulaOp::kNegate
          ? absl::StrCat(std::string(FormulaOpName(node.op)), "(", values_[node.operands[0]].value,
                         ")")
      : node.operands.size() == 2
          ? absl::StrCat(values_[node.operands[0]].value, " ", FormulaOpName(node.op), " ",
                         values_[node.operands[1]].value)
          : std::string("the value");
  return absl::StrCat("column ", node.column, ": ", is_value ? "" : "the gradient of ", what,
                      " is ", Shown(is_value ? values_[place].value : values_[place].slope));
}

void CheckFormulaValues(const FormulaDefinition& definition, const EncodingContext& context,
                        const PositionPolicy& policy, absl::string_view path,
                        std::vector<catalogue::Problem>& problems) {
  const int64_t longest = context.longest_sequence;
  if (longest < 1) return;  // reported elsewhere
  const auto formulas = absl::c_count_if(FormulaPlaces(), [&](const FormulaPlace& place) {
    return (definition.*place.nodes).has_value();
  });
  for (const FormulaPlace& place : FormulaPlaces()) {
    const std::optional<FormulaNodes>& nodes = definition.*place.nodes;
    if (!nodes) continue;
    Check check(definition, *nodes, place, context, policy, context.operations / formulas, path,
                problems);
    if (place.name == "logits") {
      CheckLogits(check, *nodes, context);
    } else if (place.name == "embedding") {
      CheckFeatures(check, longest, context.d_model, context.d_model);
    } else if (place.name == "scale") {
      CheckScale(check, context);
    } else if (context.heads > 0) {
      const int64_t d = context.d_model / context.heads;
      CheckFeatures(check, longest, d / 2, d);
    }
  }
}

}  // namespace lengthwise::models
