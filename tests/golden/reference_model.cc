#include "tests/golden/reference_model.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <utility>

#include "ATen/ops/arange.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/cross_entropy_loss.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/full.h"
#include "ATen/ops/zeros.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "models/encodings/catalogue.h"
#include "models/networks/catalogue.h"
#include "tests/golden/golden_folder.h"

namespace lengthwise::golden {
namespace {

using nlohmann::json;

json ReadJson(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  return json::parse(file);
}

// [B][n] -> int64 [B, n]
at::Tensor TokenRows(const json& rows) {
  return Float64Values(rows).to(at::kLong).view({static_cast<int64_t>(rows.size()), -1});
}

// Maps an encoding of the reference to this implementation's.
struct Counterpart {
  std::string name;
  std::map<std::string, catalogue::ParameterValue> parameters;
};

const std::map<std::string, Counterpart>& Counterparts() {
  static const auto& counterparts = *new std::map<std::string, Counterpart>{
      {"none", {"none", {}}},
      {"sin_cos", {"sin_cos", {}}},
      {"noisy_sin_cos", {"sin_cos", {{"randomized", true}}}},
      {"learnt", {"learned", {}}},
      {"noisy_learnt", {"learned", {{"randomized", true}}}},
      {"rotary", {"rope", {}}},
      {"noisy_rotary", {"rope", {{"randomized", true}, {"draws", std::string("per_block")}}}},
      {"noisy_rotary_shared", {"rope", {{"randomized", true}}}},
      {"alibi", {"alibi", {{"half_step", true}}}},
      {"noisy_alibi_paper", {"alibi", {{"randomized", true}, {"half_step", true}}}},
      {"noisy_alibi",
       {"alibi",
        {{"randomized", true},
         {"half_step", true},
         {"draws", std::string("per_block")},
         {"distances", std::string("offsets")}}}},
      {"noisy_alibi_shared",
       {"alibi",
        {{"randomized", true}, {"half_step", true}, {"distances", std::string("offsets")}}}},
      {"relative", {"relative", {}}},
      {"noisy_relative_paper", {"relative", {{"randomized", true}}}},
      {"noisy_relative_published",
       {"relative",
        {{"randomized", true},
         {"draws", std::string("per_block")},
         {"distances", std::string("offsets")},
         {"clamped_table", true}}}},
      {"noisy_relative_fixed",
       {"relative",
        {{"randomized", true},
         {"draws", std::string("per_block")},
         {"distances", std::string("offsets")}}}},
      {"noisy_relative_fixed_shared",
       {"relative", {{"randomized", true}, {"distances", std::string("offsets")}}}},
  };
  return counterparts;
}

// Resolves `given` with the entry of that name; nullptr if there is none.
template <typename EntryPointer>
EntryPointer FindEntry(absl::Span<const EntryPointer> entries, const std::string& name) {
  for (EntryPointer entry : entries) {
    if (entry->name == name) return entry;
  }
  return nullptr;
}

catalogue::Parameters ResolveOrThrow(const catalogue::Entry& entry,
                                     const catalogue::Parameters& given) {
  std::vector<catalogue::Problem> problems;
  catalogue::Parameters resolved = catalogue::Resolve(entry, given, entry.name, problems);
  if (!problems.empty()) throw std::runtime_error(problems[0].field + problems[0].description);
  return resolved;
}

// Returns 2 for "multi_head_dot_product_attention_2" and the stem
// "multi_head_dot_product_attention", 0 without a suffix, -1 for other names.
int Index(absl::string_view place, absl::string_view stem) {
  if (place == stem) return 0;
  int index = -1;
  if (absl::ConsumePrefix(&place, absl::StrCat(stem, "_")) && absl::SimpleAtoi(place, &index)) {
    return index;
  }
  return -1;
}

}  // namespace

ReferenceModel::ReferenceModel(const std::string& folder, const std::string& name)
    : folder_(Folder(folder)), name_(name) {
  const std::string path = absl::StrCat(folder_, "/", name, ".json");
  if (!std::filesystem::exists(path)) {
    unsupported_ = absl::StrCat("missing file: ", path);
    return;
  }
  exists_ = true;
  file_ = ReadJson(path);
  ReadNetwork();
  if (unsupported_.empty()) ReadSequences();
}

void ReferenceModel::ReadNetwork() {
  const std::string encoding_name = file_.at("encoding");
  const auto counterpart = Counterparts().find(encoding_name);
  const models::EncodingEntry* encoding =
      counterpart == Counterparts().end()
          ? nullptr
          : FindEntry(models::EncodingEntries(), counterpart->second.name);
  if (encoding == nullptr) {
    unsupported_ = absl::StrCat("this build has no encoding for ", encoding_name);
    return;
  }
  relative_ = encoding->name == "relative";
  catalogue::Parameters given;
  for (const auto& [key, value] : counterpart->second.parameters) given.Set(key, value);
  const json options = file_.value("encoding_params", json::object());
  for (const std::string limit : {"noise_max_length", "max_sequence_length"}) {
    if (options.contains(limit)) given.Set("max_position", options.at(limit).get<int64_t>());
  }

  const json& config = file_.at("config");
  catalogue::Parameters network_given;
  network_given.Set("blocks", config.at("num_layers").get<int64_t>());
  network_given.Set("heads", config.at("num_heads").get<int64_t>());
  network_given.Set("d_model", config.at("embedding_dim").get<int64_t>());
  network_given.Set("d_ff", config.value("widening_factor", int64_t{4}) *
                                config.at("embedding_dim").get<int64_t>());

  // Either a list of names with the shapes in `params`, or a list of names with shapes.
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const json& parameter : file_.at("param_order")) {
    const bool named = parameter.is_string();
    const std::string name = named ? parameter : parameter.at("name");
    const json& described = named ? file_.at("params").at(name) : parameter;
    parameter_names_.push_back(name);
    shapes[name] = described.at("shape").get<std::vector<int64_t>>();
  }
  input_columns_ =
      shapes.at("transformer_encoder/transformer_embedder/~embed_sequences/linear/w").at(0);
  auto network = models::CreateNetwork(
      "encoder", ResolveOrThrow(*FindEntry(models::NetworkEntries(), "encoder"), network_given),
      encoding->name, ResolveOrThrow(*encoding, given),
      {.input_columns = input_columns_, .output_columns = shapes.at("linear/w").at(1)}, layout_);
  if (!network.ok()) throw std::runtime_error(std::string(network.status().message()));
  network_ = *std::move(network);
  if (layout_.parameter_count() != file_.at("num_params").get<int64_t>()) {
    throw std::runtime_error(absl::StrCat("this network has ", layout_.parameter_count(),
                                          " parameters, the reference's ",
                                          file_.at("num_params").get<int64_t>()));
  }
}

void ReferenceModel::ReadSequences() {
  tokens_ = TokenRows(file_.at("input_tokens"));
  const at::Tensor targets = TokenRows(file_.at("target_tokens"));
  targets_ = targets.flatten();
  output_length_ = targets.size(1);
  if (!file_.at("task").is_null()) {
    // The wrapper's empty tokens use the last input column.
    tokens_ = at::cat({tokens_, at::full({tokens_.size(0), output_length_}, input_columns_ - 1,
                                         tokens_.options())},
                      1);
  }
  tokens_ = tokens_.unsqueeze(0);

  const int64_t n = tokens_.size(2);
  const json& positions = file_.at("positions");
  if (positions.contains("positions")) {
    positions_ = TokenRows(json::array({positions.at("positions")}));
  } else if (positions.contains("positions_per_layer")) {
    positions_ = TokenRows(positions.at("positions_per_layer"));
  } else if (positions.contains("offsets_per_layer")) {
    const at::Tensor offsets = TokenRows(positions.at("offsets_per_layer"));
    positions_ = at::cat({at::zeros({offsets.size(0), 1}, at::kLong), offsets}, 1);
  } else {
    positions_ = at::arange(n, at::kLong).unsqueeze(0);
  }
  // The file repeats positions for each layer even if all layers share them.
  if (positions_.eq(positions_[0]).all().item<bool>()) positions_ = positions_.narrow(0, 0, 1);
  positions_ = positions_.unsqueeze(0);
}

std::string SlotName(const std::string& reference_name, bool relative) {
  if (reference_name == "linear/w") return "output";
  if (reference_name == "linear/b") return "output_bias";
  if (absl::EndsWith(reference_name, "~embed_sequences/linear/w")) return "embedding";
  if (absl::EndsWith(reference_name, "~add_positional_encodings/embed/embeddings")) {
    return "encoding.table";
  }
  const std::vector<std::string> path = absl::StrSplit(reference_name, '/');
  const std::string& place = path.at(1);
  const std::string& leaf = path.back();

  if (const int layer = Index(place, "linear"); layer >= 0) {
    return absl::StrCat("blocks.", layer / 2, ".feed_forward.", layer % 2 == 0 ? "up" : "down",
                        leaf == "b" ? "_bias" : "");
  }
  if (const int norm = Index(place, "layer_norm"); norm >= 0) {
    return absl::StrCat("blocks.", norm / 2, norm % 2 == 0 ? ".attention" : ".feed_forward",
                        ".norm.", leaf);
  }
  if (const int block = Index(place, "multi_head_dot_product_attention"); block >= 0) {
    const std::string prefix = absl::StrCat("blocks.", block, ".");
    if (leaf == "relpos_contentbias") return prefix + "encoding.content_bias";
    if (leaf == "relpos_relativebias") return prefix + "encoding.position_bias";
    switch (Index(path.at(2), "linear")) {
      case 0:
        return prefix + "attention.query";
      case 1:
        return prefix + "attention.key";
      case 2:
        return prefix + "attention.value";
      case 3:
        return prefix + (relative ? "encoding.projection" : "attention.output");
      case 4:
        return prefix + "attention.output";
    }
  }
  throw std::runtime_error("unknown parameter: " + reference_name);
}

at::Tensor ReferenceModel::Row(const json& values_by_name) const {
  std::vector<at::Tensor> values;
  for (const std::string& name : parameter_names_) {
    const json& array = values_by_name.at(name);
    values.push_back(Float32Values(array.is_object() ? array.at("values") : array));
  }
  return Row(values);
}

at::Tensor ReferenceModel::RowOfBinaryFile() const {
  const std::string path = absl::StrCat(folder_, "/", name_, ".f32");
  std::ifstream file(path, std::ios::binary);
  std::vector<at::Tensor> values;
  for (const std::string& name : parameter_names_) {
    const std::string slot_name = SlotName(name, relative_);
    for (const auto& slot : layout_.slots()) {
      if (slot.name != slot_name) continue;
      at::Tensor numbers = at::empty({slot.size}, at::kFloat);
      file.read(reinterpret_cast<char*>(numbers.mutable_data_ptr<float>()),
                slot.size * static_cast<std::streamsize>(sizeof(float)));
      values.push_back(numbers);
    }
  }
  if (!file) throw std::runtime_error("cannot read the parameters in " + path);
  return Row(values);
}

at::Tensor ReferenceModel::Row(const std::vector<at::Tensor>& values) const {
  at::Tensor row = at::zeros({layout_.row_size()}, at::kDouble);
  size_t found = 0;
  for (size_t i = 0; i < parameter_names_.size(); ++i) {
    const std::string slot_name = SlotName(parameter_names_[i], relative_);
    for (const auto& slot : layout_.slots()) {
      if (slot.name != slot_name) continue;
      row.narrow(0, slot.offset, slot.size).copy_(values.at(i));
      ++found;
    }
  }
  if (found != layout_.slots().size()) throw std::runtime_error("parameters without a value");
  return row;
}

std::unique_ptr<models::ParameterArena> ReferenceModel::Arena(at::ScalarType dtype) const {
  auto arena = std::make_unique<models::ParameterArena>(layout_, 1, dtype, at::kCPU);
  arena->parameters().select(0, 0).copy_(file_.contains("params") ? Row(file_.at("params"))
                                                                  : RowOfBinaryFile());
  return arena;
}

at::Tensor ReferenceModel::Loss(const at::Tensor& logits) const {
  return at::cross_entropy_loss(logits.flatten(0, 2), targets_);
}

}  // namespace lengthwise::golden
