#include "models/encodings/catalogue.h"

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/encodings/formula_definition.h"
#include "models/encodings/formula_values.h"
#include "models/encodings/positions.h"
#include "nlohmann/json.hpp"

namespace lengthwise::models {
namespace {

// Returns the parameters of every encoding that uses positions, followed by the encoding's own.
std::vector<catalogue::ParameterEntry> WithPositions(
    std::initializer_list<catalogue::ParameterEntry> own) {
  std::vector<catalogue::ParameterEntry> parameters = PositionParameters();
  parameters.insert(parameters.end(), own);
  return parameters;
}

// For encodings that may come with a causal mask.
catalogue::ParameterEntry CausalParameter() {
  return {.name = "causal",
          .default_value = false,
          .documentation =
              "Causal attention: each token attends only to itself and earlier tokens, so that the "
              "network can tell their order."};
}

// One section for each encoding: its check, if it has one, and its entry.

EncodingEntry None() {
  return {{.name = "none",
           .title = "None",
           .documentation = "No positional encoding: the network cannot tell the order of its "
                            "input unless its attention is causal.",
           .parameters = {CausalParameter()}}};
}

void CheckSinCos(const catalogue::Parameters& parameters, const EncodingContext& context,
                 absl::string_view path, std::vector<catalogue::Problem>& problems) {
  if (!context.as_vectors) CheckEvenWidth(context.d_model, path, problems);
}

// For encodings that only add to the embeddings.
catalogue::ParameterEntry BesideParameter() {
  return {.name = "beside",
          .default_value = std::string(),
          .documentation =
              "Another encoding, {name: fire}, that adds to the logits or rotates queries and "
              "keys, with counted positions: alibi, rope, relative, fire or kerple_log.",
          .omitted = true};
}

EncodingEntry SinCos() {
  return {{.name = "sin_cos",
           .title = "sin / cos",
           .documentation =
               "Sines and cosines of the position at d_model / 2 frequencies, from 1 down to "
               "nearly 1 / 10000, added to the embeddings (Vaswani et al. 2017, section 3.5). "
               "Networks that take positions as vectors get a quarter as many frequencies as the "
               "longest sequence has tokens (positional attention, appendix C.3).",
           .parameters = WithPositions(
               {DrawsParameter(/*in_every_block=*/false),
                BesideParameter(),
                {.name = "interleaved",
                 .default_value = false,
                 .documentation = "Interleaves sine and cosine of each frequency, as in the "
                                  "formula of Vaswani et al. 2017. False: all sines, then all "
                                  "cosines. Matters only if features are compared one by one."}})},
          CheckSinCos,
          /*is_added=*/true,
          /*gives_vectors=*/true};
}

void CheckLearned(const catalogue::Parameters& parameters, const EncodingContext& context,
                  absl::string_view path, std::vector<catalogue::Problem>& problems) {
  CheckIntegerPositions(parameters, "a table of learned vectors", path, problems);
  const int64_t rows = parameters.Int("max_position");
  const PositionPolicy policy(parameters);
  if (policy.real() || policy.Integers(context.longest_sequence) <= rows) return;
  AddProblem(problems, absl::StrCat(path, ".max_position"), "a table of ", rows,
             " positions is too short for the longest sequence, ", context.longest_sequence,
             " tokens of input and output",
             policy.consecutive() && policy.drawn() ? " and the largest offset" : "",
             "; use a larger max_position or shorter lengths");
}

EncodingEntry Learned() {
  return {
      {.name = "learned",
       .title = "Learned",
       .documentation =
           "A table of max_position learned vectors; each token's embedding gets the vector of "
           "its position. Networks that add the encoding in every block have one table per "
           "block. With positions: subset it is the label encoding of Li and McClelland (2022). "
           "Otherwise rows beyond the lengths seen in training keep their initial values.",
       .parameters = WithPositions(
           {DrawsParameter(/*in_every_block=*/false),
            BesideParameter(),
            {.name = "stddev",
             .default_value = 1.0,
             .documentation =
                 "Standard deviation of the table's initial values. Small values help on "
                 "unseen puzzles (relational reasoning on Latin squares, Table 2).",
             .minimum = 0,
             .maximum = 100},
            {.name = "distribution",
             .default_value = std::string("truncated_normal"),
             .documentation = "Distribution of the table's initial values: normal, or normal "
                              "truncated at two standard deviations.",
             .allowed = {"truncated_normal", "normal"}},
            {.name = "trained",
             .default_value = true,
             .documentation = "False keeps the table at its random initial values (\"random\" "
                              "in relational reasoning on Latin squares)."}})},
      CheckLearned};
}

void CheckRelative(const catalogue::Parameters& parameters, const EncodingContext& context,
                   absl::string_view path, std::vector<catalogue::Problem>& problems) {
  CheckEvenWidth(context.d_model, path, problems);
  if (parameters.Bool("clamped_table") && !(PositionPolicy(parameters).name() == "subset" &&
                                            parameters.String("distances") == "offsets")) {
    AddProblem(problems, absl::StrCat(path, ".clamped_table"),
               "needs randomized offsets; set positions: subset and "
               "distances: offsets, or leave it out");
  }
}

EncodingEntry Relative() {
  return {
      {.name = "relative",
       .title = "Relative",
       .documentation = "Sinusoids of the signed distance from query to key, projected in every "
                        "block and added to the attention logits with learned content and position "
                        "biases (Transformer-XL: Dai et al. 2019, section 3.3).",
       .parameters = WithPositions(
           {DrawsParameter(),
            DistancesParameter(),
            {.name = "clamped_table",
             .default_value = false,
             .documentation =
                 "Reproduces a bug of the paper's published code, whose table of sinusoids is too "
                 "short: a query has distance max_position - 1 to itself and all later keys, and "
                 "max_position minus the drawn distance to earlier keys."}})},
      CheckRelative};
}

EncodingEntry Alibi() {
  return {{.name = "alibi",
           .title = "ALiBi",
           .documentation =
               "Attention with linear biases: every head lowers its logits in proportion to the "
               "distance between query and key, equally in both directions (Press et al. 2022).",
           .parameters = WithPositions(
               {DrawsParameter(),
                DistancesParameter(),
                {.name = "half_step",
                 .default_value = false,
                 .documentation = "Counts keys before the query as half a step nearer, as in the "
                                  "paper's published code, so that past and future differ."}})}};
}

void CheckRope(const catalogue::Parameters& parameters, const EncodingContext& context,
               absl::string_view path, std::vector<catalogue::Problem>& problems) {
  if (context.heads == 0 || context.d_model % (2 * context.heads) == 0) return;
  AddProblem(problems, path,
             "needs an even number of features in each head; the network has d_model = ",
             context.d_model, " and ", context.heads, " heads");
}

EncodingEntry Rope() {
  return {{.name = "rope",
           .title = "RoPE",
           .documentation = "Rotary encoding: rotates pairs of query and key features by angles "
                            "proportional to the position (RoFormer: Su et al. 2021).",
           .parameters = WithPositions(
               {DrawsParameter(),
                {.name = "turned_by",
                 .default_value = std::string("tokens"),
                 .documentation = "Index that sets the rotation. \"tokens\": the token's position. "
                                  "\"heads\": the head's index, as in the released code of "
                                  "positional attention, which changes no logit.",
                 .allowed = {"tokens", "heads"}}})},
          CheckRope};
}

EncodingEntry Shaw() {
  return {
      {.name = "shaw",
       .title = "Relative (Shaw)",
       .documentation = "A learned vector for each distance from query to key, up to "
                        "`max_distance` in each direction, added to the key. One table per block "
                        "(Shaw et al. 2018; relational reasoning on Latin squares, appendix 5.1). "
                        "With causal: true it is the released code's relative encoding.",
       .parameters = {
           {.name = "max_distance",
            .default_value = int64_t{15},
            .documentation = "Largest distance; tokens farther apart count as this far apart.",
            .minimum = 0,
            .maximum = 100'000},
           CausalParameter(),
           {.name = "stddev",
            .default_value = 1.0,
            .documentation = "Standard deviation of the vectors' initial values, which are normal.",
            .minimum = 0,
            .maximum = 100}}}};
}

void CheckSinCos2d(const catalogue::Parameters& parameters, const EncodingContext& context,
                   absl::string_view path, std::vector<catalogue::Problem>& problems) {
  if (context.d_model % 4 == 0) return;
  AddProblem(problems, path,
             "pairs of sine and cosine for columns and rows do not fill "
             "d_model = ",
             context.d_model, "; use a multiple of 4");
}

EncodingEntry SinCos2d() {
  return {
      {.name = "sin_cos_2d",
       .title = "2d sin / cos",
       .documentation = "Sines and cosines of a grid cell's column, in the first half of the "
                        "features, and of its row, in the second. Tokens are the cells of a grid, "
                        "row by row (relational reasoning on Latin squares, as its released code; "
                        "appendix 5.1 gives the first half to rows, yet writes it with the "
                        "position along the width; it counts from 1 and has exponents of "
                        "2i / d_model).",
       .parameters = {{.name = "columns",
                       .default_value = int64_t{4},
                       .documentation = "Cells per row of the grid.",
                       .minimum = 1,
                       .maximum = 100'000}}},
      CheckSinCos2d};
}

EncodingEntry Fire() {
  return {
      {.name = "fire",
       .title = "FIRE",
       .documentation =
           "A small network, shared by all blocks, maps the distance from query to key, as a "
           "fraction of the query's position, to each head's addition to the logits (functional "
           "interpolation for relative position encodings, FIRE: Li et al. 2024). In networks that "
           "see both directions, the later of query and key replaces the query in the fraction.",
       .parameters = WithPositions(
           {DrawsParameter(),
            {.name = "width",
             .default_value = int64_t{32},
             .documentation = "Hidden features of the small network.",
             .minimum = 1,
             .maximum = 1024},
            {.name = "c",
             .default_value = 0.1,
             .documentation = "Initial value of the learned factor on distances.",
             .minimum = 1e-6,
             .maximum = 1e6},
            {.name = "threshold",
             .default_value = 512.0,
             .documentation =
                 "Initial value of the learned threshold L. Queries at positions below L take "
                 "their distances as fractions of L, others as fractions of their position.",
             .minimum = 1e-3,
             .maximum = 1e6}})}};
}

EncodingEntry KerpleLog() {
  return {{.name = "kerple_log",
           .title = "KerpleLog",
           .documentation =
               "Every head lowers its logits by r1 log(1 + r2 distance). r1 and r2 are learned for "
               "each head, at least 0.01, and shared by all blocks (KERPLE: Chi et al. 2022).",
           .parameters = WithPositions({DrawsParameter()})}};
}

void CheckT5(const catalogue::Parameters& parameters, const EncodingContext& context,
             absl::string_view path, std::vector<catalogue::Problem>& problems) {
  const int64_t buckets = parameters.Int("buckets"), farthest = parameters.Int("max_distance");
  if (buckets % 4 != 0) {
    AddProblem(problems, absl::StrCat(path, ".buckets"), buckets,
               " buckets cannot be halved for directions and again for exact distances; use "
               "a multiple of 4");
  }
  if (2 * farthest <= buckets) {
    AddProblem(problems, absl::StrCat(path, ".max_distance"), farthest,
               " is not above half of the ", buckets, " buckets; use more than ", buckets / 2);
  }
}

EncodingEntry T5() {
  return {
      {.name = "t5",
       .title = "T5",
       .documentation = "A learned number for each head and bucket of distances, added to the "
                        "logits and shared by all blocks. Short distances have one bucket each, "
                        "longer ones share logarithmic buckets (Raffel et al. 2020, section 2.1).",
       .parameters = WithPositions(
           {DrawsParameter(),
            {.name = "buckets",
             .default_value = int64_t{32},
             .documentation = "Buckets of each head, a multiple of 4. If the network sees both "
                              "directions, each direction gets half of them.",
             .minimum = 4,
             .maximum = 65536},
            {.name = "max_distance",
             .default_value = int64_t{128},
             .documentation = "Distances from here on share the last bucket.",
             .minimum = 3,
             .maximum = 1 << 20}})},
      CheckT5};
}

void CheckPlaces(const catalogue::Parameters& parameters, const EncodingContext& context,
                 absl::string_view path, std::vector<catalogue::Problem>& problems) {
  CheckIntegerPositions(parameters, "the vector", path, problems);
}

EncodingEntry OneHot() {
  return {
      {.name = "one_hot",
       .title = "One-hot",
       .documentation = "One-hot vectors, 1 at the token's position and 0 elsewhere, for networks "
                        "that take positions as vectors (positional attention, section 4). Their "
                        "size is the longest sequence in tokens or, for drawn positions, the "
                        "largest of them.",
       .parameters = WithPositions(
           {{.name = "last_apart",
             .default_value = true,
             .documentation = "Gives the last token of a sequence, a scratchpad, the last vector "
                              "at every length, as in the paper's released code. No effect if "
                              "positions are drawn. False: the vector of its position."}})},
      CheckPlaces,
      /*is_added=*/false,
      /*gives_vectors=*/true};
}

EncodingEntry Binary() {
  return {
      {.name = "binary",
       .title = "Binary",
       .documentation =
           "The position in base two, lowest digit first, with -1 for 0 and 1 for 1, for networks "
           "that take positions as vectors (positional attention, appendix C.3). Has enough digits "
           "for all positions of the longest sequence.",
       .parameters = WithPositions({})},
      CheckPlaces,
      /*is_added=*/false,
      /*gives_vectors=*/true};
}

void CheckFormula(const catalogue::Parameters& parameters, const EncodingContext& context,
                  absl::string_view path, std::vector<catalogue::Problem>& problems) {
  const size_t before = problems.size();
  const FormulaDefinition definition = ReadFormula(parameters, path, problems);
  const bool has_pairs = definition.angle || definition.magnitude;
  if ((definition.scale || definition.magnitude) && !context.own_positions && !context.as_vectors) {
    AddProblem(problems, absl::StrCat(path, definition.scale ? ".scale" : ".magnitude"),
               "needs an encoder with softmax attention, or a causal "
               "decoder whose prompts are causal");
  }
  if (has_pairs && context.heads > 0 && context.d_model % (2 * context.heads) != 0) {
    AddProblem(problems, absl::StrCat(path, definition.angle ? ".angle" : ".magnitude"),
               "takes pairs of features, so each head needs an even number "
               "of them; the network has d_model = ",
               context.d_model, " and ", context.heads, " heads");
  }
  if (definition.logits && context.open_ended && UsesArgument(*definition.logits, 4)) {
    AddProblem(problems, absl::StrCat(path, ".logits"),
               "n is unknown while a text is continued token by token; use only q and k");
  }
  for (const FormulaParameter& parameter : definition.parameters) {
    const bool per_head = parameter.per == FormulaParameter::Per::kHead;
    const int64_t expected = per_head ? context.heads : context.blocks;
    if (parameter.size > 0 || parameter.initial.size() == 1 ||
        static_cast<int64_t>(parameter.initial.size()) == expected) {
      continue;
    }
    AddProblem(problems, absl::StrCat(path, ".parameters"), "\"", parameter.name, "\" has ",
               parameter.initial.size(), " initial values, the network has ", expected,
               per_head ? " heads" : " layers");
  }
  if (problems.size() != before) return;
  CheckFormulaValues(definition, context, PositionPolicy(parameters), path, problems);
}

// A formula of the encoding "formula", or its parameters; empty by default.
catalogue::ParameterEntry FormulaText(const char* name, const char* documentation,
                                      bool omitted = false) {
  return {.name = name,
          .default_value = std::string(),
          .documentation = documentation,
          .omitted = omitted};
}

EncodingEntry Formula() {
  return {
      {.name = "formula",
       .title = "Formula",
       .documentation =
           "An encoding of your own, written in the specification: formulas for what is added to "
           "the logits or multiplies them, is added to the embeddings, or rotates or stretches "
           "queries and keys, with parameters that are learned or fixed.",
       .parameters = WithPositions(
           {DrawsParameter(),
            FormulaText("logits",
                        "Formula of query position q, key position k, head h of H and length n: "
                        "added to the attention logits of head h."),
            FormulaText("embedding",
                        "Formula of position p and channel c of d = d_model: added to the "
                        "embedding of each token."),
            FormulaText("angle",
                        "Formula of position p and pair i of the d / 2 pairs of a head's d "
                        "features: queries and keys are rotated by it."),
            FormulaText("scale",
                        "Formula of query position q, head h of H and n, the tokens that the query "
                        "sees: multiplies its logits (scalable softmax: \"s * log(n)\", Nakanishi "
                        "2025).",
                        /*omitted=*/true),
            FormulaText("magnitude",
                        "Formula of position p and pair i of the d / 2 pairs of a head's d "
                        "features: multiplies queries and divides keys (xPos, Sun et al. 2022).",
                        /*omitted=*/true),
            FormulaText("parameters",
                        "The formulas' own parameters: a map from names to numbers, lists or "
                        "settings in a specification, a text such as \"a per head = 1\" when "
                        "resolved.")})},
      CheckFormula};
}

// Checks positions that differ between the sequences of a batch.
void CheckOwnPositions(const catalogue::Parameters& parameters, const EncodingContext& context,
                       absl::string_view path, std::vector<catalogue::Problem>& problems) {
  const PositionPolicy policy(parameters);
  if (!policy.each()) return;
  const bool from_data = policy.from_data();
  if (!context.own_positions) {
    AddProblem(problems, absl::StrCat(path, from_data ? ".positions" : ".draws"),
               "the network takes the same positions for all sequences of a batch; use an "
               "encoder with softmax attention, or a causal decoder whose prompts are causal");
  }
  if (!from_data) return;
  if (context.largest_id < 0) {
    AddProblem(problems, absl::StrCat(path, ".positions"),
               "data takes the ids of examples, and a task has none; set "
               "`coupling` of decimal_addition, or give the lines of a "
               "file \"positions\"");
    return;
  }
  const int64_t largest = context.largest_id + parameters.Int("random_offset");
  if (largest < parameters.Int("max_position")) return;
  AddProblem(
      problems, absl::StrCat(path, ".max_position"), "got ", parameters.Int("max_position"),
      ", but ids",
      context.largest_id_line.empty() ? "" : absl::StrCat(" (", context.largest_id_line, ")"),
      parameters.Int("random_offset") > 0 ? " with the offset" : "", " go up to ", largest,
      "; use at least ", largest + 1);
}

// Encodings that a second one may stand beside them.
constexpr absl::string_view kBesides[] = {"alibi", "rope", "relative", "fire", "kerple_log"};

constexpr absl::string_view kBiases[] = {"alibi", "fire", "kerple_log", "t5"};

EncodingEntry Own() {
  return {{.name = "own",
           .title = "The module's own",
           .documentation = "For the network `python`: the module gets the positions and encodes "
                            "them itself, or not at all.",
           .parameters = WithPositions({DrawsParameter(/*in_every_block=*/false)})},
          /*check=*/nullptr,
          /*is_added=*/false,
          /*gives_vectors=*/false,
          /*is_own=*/true};
}

}  // namespace

bool EncodingEntry::uses_positions() const {
  return absl::c_any_of(parameters, [](const auto& own) { return own.name == "positions"; });
}

absl::Span<const EncodingEntry* const> EveryEncodingEntry() {
#define LENGTHWISE_ENTRY(Name) new EncodingEntry(Name()),
  static const auto& entries = *new std::vector<const EncodingEntry*>{
      LENGTHWISE_ENCODINGS(LENGTHWISE_ENTRY) new EncodingEntry(Own())};
#undef LENGTHWISE_ENTRY
  return entries;
}

absl::Span<const EncodingEntry* const> EncodingEntries() {
  return EveryEncodingEntry().first(EveryEncodingEntry().size() - 1);
}

bool IsBias(absl::string_view name, const catalogue::Parameters& parameters) {
  if (name != "formula") return absl::c_linear_search(kBiases, name);
  const auto is_set = [&](absl::string_view place) {
    const auto found = parameters.values().find(place);
    return found != parameters.values().end() &&
           found->second != catalogue::ParameterValue(std::string());
  };
  return is_set("logits") && !is_set("angle") && !is_set("embedding") && !is_set("scale") &&
         !is_set("magnitude");
}

std::optional<Beside> BesideOf(const catalogue::Parameters& parameters, absl::string_view path,
                               std::vector<catalogue::Problem>& problems) {
  const auto found = parameters.values().find("beside");
  if (found == parameters.values().end()) return std::nullopt;
  const auto& text = std::get<std::string>(found->second);
  if (text.empty()) return std::nullopt;
  const std::string field = absl::StrCat(path, ".beside");
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool is_map = json.is_object() && json.contains("name") && json["name"].is_string();
  const std::string name = is_map ? json["name"].get<std::string>() : text;
  if (!absl::c_linear_search(kBesides, name)) {
    AddProblem(problems, field, "got \"", name, "\", expected one of ",
               absl::StrJoin(kBesides, ", "), ", or a map with its `name`");
    return std::nullopt;
  }
  catalogue::Parameters given;
  const nlohmann::json fields = is_map ? json : nlohmann::json::object();
  for (const auto& [parameter, value] : fields.items()) {
    if (parameter == "name") continue;
    if (value.is_boolean()) given.Set(parameter, value.get<bool>());
    if (value.is_number()) given.Set(parameter, value.get<double>());
    if (value.is_string()) given.Set(parameter, value.get<std::string>());
    if (!value.is_primitive() || value.is_null()) {
      AddProblem(problems, absl::StrCat(field, ".", parameter),
                 "expected a number, true, false or text");
    }
  }
  const size_t before = problems.size();
  Beside beside;
  const absl::Span<const EncodingEntry* const> entries = EncodingEntries();
  beside.entry = *absl::c_find_if(entries, [&](const auto* entry) { return entry->name == name; });
  beside.parameters = catalogue::Resolve(*beside.entry, given, field, problems);
  if (PositionPolicy(beside.parameters).drawn()) {
    AddProblem(problems, field, "has counted positions; leave out how they are drawn");
  }
  return problems.size() == before ? std::optional(std::move(beside)) : std::nullopt;
}

const EncodingEntry& FormulaEntry() {
  const absl::Span<const EncodingEntry* const> entries = EncodingEntries();
  return **absl::c_find_if(entries, [](const auto* entry) { return entry->name == "formula"; });
}

void CheckEncoding(const EncodingEntry& entry, const catalogue::Parameters& parameters,
                   const EncodingContext& context, absl::string_view path,
                   std::vector<catalogue::Problem>& problems) {
  const bool fits = context.alone
                        ? entry.is_own || (context.takes_bias && IsBias(entry.name, parameters))
                        : !entry.is_own;
  if (!fits) {
    AddProblem(problems, path,
               context.alone ? "the network takes \"own\" and, with `heads`, encodings "
                               "that only add to the logits"
                             : "\"own\" is for the network \"python\"");
    return;
  }
  if (context.reads_in_order && entry.name != "none") {
    AddProblem(problems, path, "\"", entry.name,
               "\" has no effect in a network that reads "
               "tokens in their order; use \"none\"");
    return;
  }
  if (!context.alone && !(context.as_vectors ? entry.gives_vectors : entry.is_added)) {
    std::vector<std::string> others;
    for (const EncodingEntry* other : EncodingEntries()) {
      if (context.as_vectors ? other->gives_vectors : other->is_added)
        others.push_back(other->name);
    }
    AddProblem(problems, path, "\"", entry.name, "\" ",
               context.as_vectors ? "does not give positions as vectors, which the network needs"
                                  : "gives positions only as vectors, which the network cannot use",
               "; use one of ", absl::StrJoin(others, ", "));
    return;
  }
  if (entry.uses_positions()) CheckOwnPositions(parameters, context, path, problems);
  if (const auto beside = BesideOf(parameters, path, problems)) {
    CheckEncoding(*beside->entry, beside->parameters, context, absl::StrCat(path, ".beside"),
                  problems);
    if (context.as_vectors) {
      AddProblem(problems, absl::StrCat(path, ".beside"),
                 "the network takes positions as vectors alone");
    }
  }
  if (entry.uses_positions()) {
    CheckPositions(parameters, context.longest_sequence, path, problems);
    // An evaluation makes positions before the end of the answer, and so the mean, is known.
    if (context.open_ended && parameters.values().contains("centered") &&
        parameters.Bool("centered")) {
      AddProblem(problems, absl::StrCat(path, ".centered"),
                 "needs sequences of known length, but a text ends where the model ends it; leave "
                 "it out");
    }
  }
  if (entry.check != nullptr) entry.check(parameters, context, path, problems);
}

}  // namespace lengthwise::models
