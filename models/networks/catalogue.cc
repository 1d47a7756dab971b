#include "models/networks/catalogue.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace lengthwise::models {
namespace {

catalogue::ParameterEntry SizeParameter(const std::string& name, int64_t default_value,
                                        const std::string& documentation, double maximum = 1024,
                                        double minimum = 1) {
  return {.name = name,
          .default_value = default_value,
          .documentation = documentation,
          .minimum = minimum,
          .maximum = maximum};
}

catalogue::ParameterEntry BlocksParameter(
    int64_t default_value,
    const std::string& documentation = "Blocks of attention and feed-forward layers.") {
  return SizeParameter("blocks", default_value, documentation, 256);
}

catalogue::ParameterEntry HeadsParameter(int64_t default_value) {
  return SizeParameter("heads", default_value, "Attention heads; a divisor of d_model.", 256);
}

catalogue::ParameterEntry WidthParameter(int64_t default_value) {
  return SizeParameter("d_model", default_value, "Features of a token.", 8192);
}

catalogue::ParameterEntry FeedForwardParameter(const std::string& documentation) {
  return SizeParameter("d_ff", 0, documentation, 32768, 0);
}

void CheckHeads(const catalogue::Parameters& parameters, absl::string_view path,
                std::vector<catalogue::Problem>& problems) {
  const int64_t heads = parameters.Int("heads"), d_model = parameters.Int("d_model");
  if (d_model % heads == 0) return;
  AddProblem(problems, absl::StrCat(path, ".heads"), heads,
             " heads do not divide d_model = ", d_model, "; use a divisor of it");
}

EncodingContext TransformerContext(const catalogue::Parameters& parameters) {
  const auto attention = parameters.values().find("attention");
  return {.d_model = parameters.Int("d_model"),
          .heads = parameters.Int("heads"),
          .blocks = parameters.Int("blocks"),
          .own_positions = attention == parameters.values().end() ||
                           parameters.String("attention") != "geometric"};
}

// One section for each network: its check and context, if it has its own, and its entry.

void CheckEncoder(const catalogue::Parameters& parameters, absl::string_view path,
                  std::vector<catalogue::Problem>& problems) {
  CheckHeads(parameters, path, problems);
  if (parameters.Bool("dropout_at_evaluation") && parameters.Double("dropout") == 0) {
    AddProblem(problems, absl::StrCat(path, ".dropout_at_evaluation"),
               "has no effect without dropout; set dropout, or leave it out");
  }
}

NetworkEntry Encoder() {
  return {
      {.name = "encoder",
       .title = "Transformer encoder",
       .documentation = "A bidirectional Transformer encoder with layer norm after each residual "
                        "addition (Vaswani et al. 2017; randomized positional encodings, section "
                        "4). It reads the input and one empty token per output.",
       .parameters =
           {BlocksParameter(5),
            HeadsParameter(8),
            WidthParameter(64),
            FeedForwardParameter(
                "Features between the two feed-forward layers; 0 means 4 * d_model."),
            {.name = "attention",
             .default_value = std::string("softmax"),
             .documentation =
                 "\"softmax\", or \"geometric\": attends to the nearest matching key, with "
                 "directional encoding (Csordas et al. 2022; Table 5, whose encoding is none).",
             .allowed = {"softmax", "geometric"}},
            {.name = "dropout",
             .default_value = 0.0,
             .documentation = "Probability of dropping a feature that attention or feed-forward "
                              "layers add, or a feature of the sum of embedding and encoding. The "
                              "paper's published code has 0.1.",
             .minimum = 0,
             .maximum = 0.95},
            {.name = "dropout_at_evaluation",
             .default_value = false,
             .documentation =
                 "Applies dropout in evaluations as well, as the paper's published code does."},
            {.name = "extra_input_columns",
             .default_value = int64_t{0},
             .documentation = "Unused rows of the embedding, beyond the task's input tokens and "
                              "the empty token. With 1, tasks on bits have the 249,026 parameters "
                              "that the paper prints (270,146 with the relative encoding).",
             .minimum = 0,
             .maximum = 1024}}},
      /*task_kinds=*/{tasks::TaskKind::kTransduction, tasks::TaskKind::kPuzzle},
      CheckEncoder,
      TransformerContext};
}

// `check` is that of the network without a loop.
template <auto check>
void CheckLooped(const catalogue::Parameters& parameters, absl::string_view path,
                 std::vector<catalogue::Problem>& problems) {
  check(parameters, path, problems);
  if (parameters.Int("loops") > 0 || parameters.Double("loops_per_token") > 0) return;
  AddProblem(problems, absl::StrCat(path, ".loops"),
             "got 0, and no loops_per_token: set either above 0");
}

// `entry` with a loop around its blocks.
template <auto check>
NetworkEntry Looped(NetworkEntry entry, const std::string& name, const std::string& title) {
  entry.documentation = absl::StrCat(
      "The network ", entry.name,
      " whose blocks are one function f, applied T times with the same weights: h_0 = 0, h_t = "
      "f(h_{t-1} + e), where e are the embeddings (Fan et al. 2024, \"Looped Transformers for "
      "Length Generalization\", arXiv 2409.15647).");
  entry.name = name;
  entry.title = title;
  entry.parameters.front().default_value = int64_t{1};  // blocks
  entry.parameters.insert(
      entry.parameters.begin() + 1,
      {SizeParameter("loops", 8,
                     "Times T that the blocks are applied. The paper has T = n for parity and "
                     "copying, and n + 1 for addition; see loops_per_token.",
                     256, 0),
       {.name = "loops_per_token",
        .default_value = 0.0,
        .documentation = "Adds this times n to T, rounded, where n counts the tokens of the input, "
                         "or of a text's prompt. For T = n set loops to 0 and this to 1.",
        .minimum = 0,
        .maximum = 16},
       {.name = "inject_input",
        .default_value = true,
        .documentation = "Adds e in every loop. False: only in the first."}});
  entry.check = CheckLooped<check>;
  return entry;
}

NetworkEntry LoopedEncoder() {
  return Looped<CheckEncoder>(Encoder(), "looped_encoder", "Looped Transformer encoder");
}

NetworkEntry LayerwiseEncoder() {
  return {
      {.name = "layerwise_encoder",
       .title = "Transformer encoder, encoding in every layer",
       .documentation = "A Transformer encoder that adds a positional encoding in every block, "
                        "each with parameters of its own, and reads the answer at the last token "
                        "(relational reasoning on Latin squares, as its released code; section 2.2 "
                        "names a standard encoder).",
       .parameters =
           {BlocksParameter(4),
            HeadsParameter(1),
            WidthParameter(160),
            FeedForwardParameter(
                "Features between the two feed-forward layers; 0 means 4 * d_model."),
            {.name = "outer_gelu",
             .default_value = true,
             .documentation = "Applies gelu after the second feed-forward layer as well, as in the "
                              "released code."},
            {.name = "attention_biases",
             .default_value = std::string("all"),
             .documentation =
                 "Biases of attention's projections. \"all\"; \"inputs\": only those of queries, "
                 "keys and values; \"none\". The released code has none with rope and causal "
                 "attention, and those of the inputs with the relative encoding.",
             .allowed = {"all", "inputs", "none"}},
            {.name = "attention_initial",
             .default_value = std::string("xavier"),
             .documentation =
                 "What queries, keys and values start from. \"xavier\": Xavier's uniform of their "
                 "one matrix, and biases of 0, as PyTorch's multi-head attention; \"linear\": "
                 "uniform up to 1 / sqrt(d_model), biases too, as its linear layers. The released "
                 "code has the latter with rope, causal attention and the relative encoding.",
             .allowed = {"xavier", "linear"}},
            {.name = "output_projection",
             .default_value = true,
             .documentation = "Adds a linear layer after attention. The released code has none "
                              "with the relative encoding."},
            {.name = "temperature",
             .default_value = 1.0,
             .documentation = "Divisor of the attention logits. The released code has 0.01 with "
                              "causal attention.",
             .minimum = 1e-6,
             .maximum = 1e6},
            {.name = "encoding_dropout",
             .default_value = 0.0,
             .documentation = "Dropout of the sum of a block's input and its encoding, in training "
                              "and evaluation alike. No effect for encodings that add nothing to "
                              "the features. The released code has 0.1 with the fixed encodings, "
                              "never turned off; the paper has none.",
             .minimum = 0,
             .maximum = 0.99}}},
      /*task_kinds=*/{tasks::TaskKind::kTransduction, tasks::TaskKind::kPuzzle},
      CheckHeads,
      TransformerContext};
}

void CheckPositionalAttention(const catalogue::Parameters& parameters, absl::string_view path,
                              std::vector<catalogue::Problem>& problems) {
  CheckHeads(parameters, path, problems);
  if (parameters.String("rotary") == "none") return;
  const std::string field = absl::StrCat(path, ".rotary");
  if (parameters.String("attention_by") != "input" || !parameters.Bool("input_positions")) {
    AddProblem(problems, field,
               "rotates queries and keys of an input that already has positions: set attention_by: "
               "input and input_positions: true, or \"none\" and the encoding \"rope\"");
  } else if (parameters.Int("d_model") % 2 != 0) {
    AddProblem(problems, field, "rotates pairs of features; d_model = ", parameters.Int("d_model"),
               " is odd");
  }
}

EncodingContext PositionalAttentionContext(const catalogue::Parameters& parameters) {
  const bool by_input = parameters.String("attention_by") == "input";
  EncodingContext context = TransformerContext(parameters);
  context.as_vectors = !by_input || parameters.Bool("input_positions");
  context.own_positions = false;
  return context;
}

NetworkEntry PositionalAttention() {
  return {
      {.name = "positional_attention",
       .title = "Positional attention",
       .documentation =
           "A Transformer without residual additions and layer norms, whose attention depends only "
           "on positions (positional attention, section 4). With attention_by: input and "
           "input_positions: true it is the standard Transformer that the paper compares it with.",
       .parameters =
           {{.name = "attention_by",
             .default_value = std::string("positions"),
             .documentation = "Source of queries and keys: the \"positions\" as vectors, the "
                              "block's \"input\", or \"both\", concatenated.",
             .allowed = {"positions", "input", "both"}},
            {.name = "input_positions",
             .default_value = false,
             .documentation = "Appends the position's vector to each number of the input."},
            {.name = "rotary",
             .default_value = std::string("none"),
             .documentation =
                 "RoPE in addition to the positions in the input: rotates queries and keys by the "
                 "position of their \"tokens\" or, as in the released code of Figure 9, by the "
                 "index of their \"heads\", which changes no logit.",
             .allowed = {"none", "tokens", "heads"}},
            {.name = "diagonal_input",
             .default_value = false,
             .documentation = "Puts a token's number at the token's own index of a vector of "
                              "zeros, so that the input tells its position (appendix G)."},
            BlocksParameter(4,
                            "Blocks of attention and feed-forward layers: ceil(log2 n) + 1 in "
                            "the paper, 4 for vectors of 8 numbers."),
            HeadsParameter(2),
            WidthParameter(64),
            FeedForwardParameter("Features between the two feed-forward layers; 0 means d_model."),
            {.name = "scaled",
             .default_value = true,
             .documentation = "Divides logits by sqrt(d_k), as in the released code; equations (2) "
                              "and (3) do not."},
            {.name = "attention_first",
             .default_value = false,
             .documentation =
                 "Puts attention's output before the block's input in the input of the "
                 "feed-forward layers, as in equation (1). The released code puts it after."}}},
      /*task_kinds=*/{tasks::TaskKind::kRegression},
      CheckPositionalAttention,
      PositionalAttentionContext};
}

EncodingContext GraphNetworkContext(const catalogue::Parameters& parameters) {
  EncodingContext context = TransformerContext(parameters);
  context.as_vectors = true;
  context.own_positions = false;
  return context;
}

NetworkEntry GraphNetwork() {
  return {
      {.name = "graph_network",
       .title = "Graph network",
       .documentation = "A graph convolutional or graph attention network whose nodes are the "
                        "tokens (positional attention, appendix H). The paper gives no sizes; "
                        "the defaults are the depth and width of its other networks.",
       .parameters =
           {{.name = "architecture",
             .default_value = std::string("convolution"),
             .documentation = "\"convolution\" (GCN) or \"attention\" (GAT).",
             .allowed = {"convolution", "attention"}},
            {.name = "graph",
             .default_value = std::string("complete"),
             .documentation = "\"complete\": every token is connected to every other. \"star\": "
                              "every token is connected to the last one, the scratchpad.",
             .allowed = {"complete", "star"}},
            {.name = "self_connections",
             .default_value = true,
             .documentation = "Connects every token to itself, too. The paper does not say; its "
                              "numbers on stars are those of graphs without."},
            BlocksParameter(4, "Rounds of message passing."),
            SizeParameter("heads", 2, "Heads of graph attention; a divisor of d_model.", 256),
            WidthParameter(64)}},
      /*task_kinds=*/{tasks::TaskKind::kRegression},
      CheckHeads,
      GraphNetworkContext};
}

// Networks of "Neural Networks and the Chomsky Hierarchy" (recurrent.cc).

EncodingContext RecurrentContext(const catalogue::Parameters& parameters) {
  return {.d_model = parameters.Int("hidden_size"), .blocks = 1, .reads_in_order = true};
}

catalogue::ParameterEntry CellParameter() {
  return {.name = "cell",
          .default_value = std::string("rnn"),
          .documentation = "What reads a token and the memory: \"rnn\" or \"lstm\".",
          .allowed = {"rnn", "lstm"}};
}

// `own` are the parameters of the network's memory.
NetworkEntry Recurrent(const std::string& name, const std::string& title,
                       const std::string& documentation,
                       std::vector<catalogue::ParameterEntry> own = {}) {
  std::vector<catalogue::ParameterEntry> parameters = {
      SizeParameter("hidden_size", 256, "Features of the hidden state.", 8192),
      SizeParameter("computation_steps", 0,
                    "Computation tokens between input and answer, for each token of the input "
                    "(computation_steps_mult of the published code).",
                    16, 0)};
  parameters.insert(parameters.end(), own.begin(), own.end());
  return {
      {.name = name,
       .title = title,
       .documentation = documentation +
                        " As the published code of \"Neural Networks and the Chomsky Hierarchy\" "
                        "(Deletang et al. 2023) computes it.",
       .parameters = std::move(parameters)},
      /*task_kinds=*/{tasks::TaskKind::kTransduction},
      /*check=*/nullptr,
      RecurrentContext};
}

NetworkEntry Rnn() {
  return Recurrent("rnn", "RNN",
                   "A recurrent network (Elman 1990): h_t = relu(x_t W_x + b_x + h_{t-1} W_h + "
                   "b_h).");
}

NetworkEntry Lstm() {
  return Recurrent("lstm", "LSTM",
                   "A long short-term memory (Hochreiter and Schmidhuber 1997): c_t = sigmoid(f + "
                   "1) c_{t-1} + sigmoid(i) tanh(g), h_t = sigmoid(o) tanh(c_t).");
}

NetworkEntry StackRnn() {
  return Recurrent(
      "stack_rnn", "Stack-RNN",
      "A recurrent network that pushes, pops and keeps stacks of vectors (Joulin and Mikolov "
      "2015): S'[i] = push S[i-1] + pop S[i+1] + keep S[i], with the pushed vector as S[-1].",
      {CellParameter(), SizeParameter("stacks", 1, "Stacks, whose actions share one softmax."),
       SizeParameter("stack_cell_size", 8,
                     "Numbers of a stack's cell. The published code has no default; 8 is that of "
                     "its tapes."),
       SizeParameter("stack_size", 30, "Cells of a stack; a push drops the lowest one.")});
}

// For estimates of memory, the weights of runs between two tokens are as many logits.
EncodingContext NondeterministicStackContext(const catalogue::Parameters& parameters) {
  const int64_t pairs = parameters.Int("stack_states") * parameters.Int("stack_symbols");
  const int64_t steps = 1 + parameters.Int("computation_steps");
  EncodingContext context = RecurrentContext(parameters);
  context.heads = pairs * pairs * steps * steps;
  return context;
}

NetworkEntry NondeterministicStackRnn() {
  NetworkEntry entry = Recurrent(
      "nondeterministic_stack_rnn", "NDStack-RNN",
      "A recurrent network that reads the top symbols of all runs of a weighted pushdown automaton "
      "(DuSell and Chiang 2020). Time and memory grow with the square of the sequence's length.",
      {CellParameter(),
       SizeParameter("stack_states", 2,
                     "States of the automaton. The published code has no default.", 16),
       SizeParameter("stack_symbols", 2, "Symbols of the stack. The published code has no default.",
                     16),
       {.name = "read_states",
        .default_value = false,
        .documentation = "Reads pairs of a state and a symbol instead of symbols."}});
  entry.encoding_context = NondeterministicStackContext;
  return entry;
}

void CheckTapeRnn(const catalogue::Parameters& parameters, absl::string_view path,
                  std::vector<catalogue::Problem>& problems) {
  const auto sizes = WriteLayers(parameters.String("write_layers"));
  if (sizes.ok()) return;
  AddProblem(problems, absl::StrCat(path, ".write_layers"), sizes.status().message());
}

NetworkEntry TapeRnn() {
  NetworkEntry entry = Recurrent(
      "tape_rnn", "Tape-RNN",
      "A recurrent network that writes to the first cell of a tape and turns the tape by one cell "
      "or by the input's length n (after Suzgun et al. 2019): T'[m] = a_0 T[m] + a_1 T[m+1] + a_2 "
      "T[m-1] + a_3 T[m+n] + a_4 T[m-n].",
      {CellParameter(),
       SizeParameter("tapes", 1, "Tapes."),
       SizeParameter("memory_cell_size", 8,
                     "Numbers of a tape's cell, as in the published training script."),
       SizeParameter("memory_size", 40, "Cells of a tape, which is a ring, as in that script."),
       {.name = "write_layers",
        .default_value = std::string("64, 64"),
        .documentation = "Sizes of the hidden layers of the network that makes the written vector, "
                         "separated by commas; \"\" for none."}});
  entry.check = CheckTapeRnn;
  return entry;
}

EncodingContext CausalDecoderContext(const catalogue::Parameters& parameters) {
  EncodingContext context = TransformerContext(parameters);
  context.open_ended = true;
  context.own_positions = parameters.String("prompt_attention") != "bidirectional";
  return context;
}

NetworkEntry CausalDecoder() {
  return {
      {.name = "causal_decoder",
       .title = "Transformer decoder",
       .documentation =
           "A causal Transformer that continues text, with RMS norms before and after its layers, "
           "gated feed-forward layers and no biases (decimal addition, Table E.1). The default is "
           "the paper's model of 25M parameters. For 2M, 5M and 268M set blocks to 2, 4 and 16, "
           "d_model to 256, 256 and 1024, and heads to 4, 4 and 16.",
       .parameters = {BlocksParameter(6),
                      HeadsParameter(8),
                      WidthParameter(512),
                      FeedForwardParameter("Features of gate and value; 0 means 4 * d_model."),
                      {.name = "norm",
                       .default_value = std::string("sandwich"),
                       .documentation =
                           "Placement of the norms; the paper only says \"both PreNorm and "
                           "PostNorm layers, following the Primer architecture\". "
                           "\"sandwich\": x + N(f(N(x))). \"residual_post\": N(x + f(N(x))). "
                           "\"primer\": x + f(N(x)) for attention, x + N(f(x)) for the "
                           "feed-forward layer, as in Primer.",
                       .allowed = {"sandwich", "residual_post", "primer"}},
                      {.name = "gelu",
                       .default_value = std::string("exact"),
                       .documentation =
                           "The gate's activation: \"exact\" GELU, or its \"tanh\" approximation.",
                       .allowed = {"exact", "tanh"}},
                      {.name = "tied",
                       .default_value = false,
                       .documentation = "Uses the embedding's vectors as the output layer."},
                      {.name = "dropout",
                       .default_value = 0.0,
                       .documentation = "Dropout probability in training, for the embeddings and "
                                        "for what attention and feed-forward layers add.",
                       .minimum = 0,
                       .maximum = 0.95},
                      {.name = "prompt_attention",
                       .default_value = std::string("causal"),
                       .documentation =
                           "What prompt tokens attend to: earlier tokens (\"causal\") or the whole "
                           "prompt (\"bidirectional\"), as in a prefix language model (section "
                           "E.2). Its loss counts only answers: training.packing.answers_only.",
                       .allowed = {"causal", "bidirectional"}},
                      {.name = "recompute_activations",
                       .default_value = false,
                       .documentation =
                           "Gradient checkpointing: keeps only each block's input for the backward "
                           "pass and recomputes the rest. For large models and batches: a third "
                           "more computation, a fraction of the memory, the same gradients."}}},
      /*task_kinds=*/{tasks::TaskKind::kText},
      CheckHeads,
      CausalDecoderContext};
}

NetworkEntry LoopedDecoder() {
  return Looped<CheckHeads>(CausalDecoder(), "looped_decoder", "Looped Transformer decoder");
}

void CheckPython(const catalogue::Parameters& parameters, absl::string_view path,
                 std::vector<catalogue::Problem>& problems) {
  for (const char* name : {"file", "class"}) {
    if (!parameters.String(name).empty()) continue;
    AddProblem(problems, absl::StrCat(path, ".", name),
               "required, as in {name: python, file: my_network.py, class: "
               "MyNetwork}");
  }
  if (!problems.empty() || !parameters.String("file_sha256").empty()) return;
  AddProblem(problems, absl::StrCat(path, ".file"), "nothing is known of the file ",
             parameters.String("file"),
             "; submit the specification with `lengthwise submit`, which "
             "uploads it, or train with `lengthwise run`");
}

// Sizes for estimates of time and memory; the module's own are unknown.
EncodingContext PythonContext(const catalogue::Parameters& parameters) {
  const int64_t heads = parameters.Int("heads");
  return {.d_model = 8 * (heads > 0 ? heads : 8),
          .heads = heads > 0 ? heads : 8,
          .blocks = 1,
          .alone = true,
          .takes_bias = heads > 0,
          .own_positions = true};
}

NetworkEntry Python() {
  return {
      {.name = kPythonNetwork,
       .title = "PyTorch module",
       .documentation =
           "Your own network: a torch.nn.Module in a file, which a Python process beside the "
           "worker computes (docs/your_own_network.md). Its encoding is `own`; with `heads`, it "
           "also takes encodings that only add to the logits.",
       .parameters =
           {{.name = "file",
             .default_value = std::string(),
             .documentation = "The Python file, or a folder with __init__.py and other files, "
                              "relative to the specification. Required."},
            {.name = "class",
             .default_value = std::string(),
             .documentation = "The class, called with the number of input symbols, the number "
                              "of output symbols and `arguments`. Required."},
            {.name = "arguments",
             .default_value = std::string(),
             .documentation = "Further arguments of the class by name, such as {d_model: 64}."},
            {.name = "heads",
             .default_value = int64_t{0},
             .documentation =
                 "Heads of a module whose `forward` takes `attention_bias`, [heads, n, n] or "
                 "[batch, heads, n, n]: it trains with encodings that only add to the logits, too. "
                 "0: it takes none.",
             .minimum = 0,
             .maximum = 256},
            {.name = "file_sha256",
             .default_value = std::string(),
             .documentation = "SHA-256 of the archive of the file or folder. `lengthwise` "
                              "fills it in. If you set it, the file must match."},
            {.name = "file_bytes",
             .default_value = int64_t{0},
             .documentation = "Size of that archive. `lengthwise` fills it in; do not set it.",
             .minimum = 0,
             .maximum = kMostPythonArchive}}},
      /*task_kinds=*/
      {tasks::TaskKind::kTransduction, tasks::TaskKind::kPuzzle, tasks::TaskKind::kRegression,
       tasks::TaskKind::kText},
      CheckPython,
      PythonContext};
}

}  // namespace

Loops::Loops(const catalogue::Parameters& parameters) {
  if (!parameters.values().contains("loops")) return;
  constant = parameters.Int("loops");
  per_token = parameters.Double("loops_per_token");
  inject_input = parameters.Bool("inject_input");
}

int64_t Loops::Of(int64_t n) const {
  return std::max<int64_t>(1, constant + std::llround(per_token * static_cast<double>(n)));
}

absl::StatusOr<std::vector<int64_t>> WriteLayers(absl::string_view text) {
  constexpr size_t kMostLayers = 16;
  constexpr int64_t kMostFeatures = 8192;
  std::vector<int64_t> sizes;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    if (text.empty()) break;
    int64_t size = 0;
    if (!absl::SimpleAtoi(part, &size) || size < 1 || size > kMostFeatures ||
        sizes.size() == kMostLayers) {
      return absl::InvalidArgumentError(absl::StrCat(
          "got \"", std::string(text), "\", expected at most ", kMostLayers, " sizes from 1 to ",
          kMostFeatures, ", such as \"64, 64\", or \"\" for none"));
    }
    sizes.push_back(size);
  }
  return sizes;
}

bool ReadsInOrder(absl::string_view network) {
  // Asked of each pair of a grid.
  static const auto& in_order = *[] {
    auto* names = new absl::flat_hash_set<std::string>;
    for (const NetworkEntry* entry : NetworkEntries()) {
      std::vector<catalogue::Problem> problems;
      const catalogue::Parameters defaults = catalogue::Resolve(*entry, {}, "", problems);
      if (entry->encoding_context(defaults).reads_in_order) names->insert(entry->name);
    }
    return names;
  }();
  return in_order.contains(network);
}

absl::Span<const NetworkEntry* const> EveryNetworkEntry() {
#define LENGTHWISE_ENTRY(Name, Made) new NetworkEntry(Name()),
  static const auto& entries = *new std::vector<const NetworkEntry*>{LENGTHWISE_NETWORKS(
      LENGTHWISE_ENTRY) LENGTHWISE_LANGUAGE_MODELS(LENGTHWISE_ENTRY) new NetworkEntry(Python())};
#undef LENGTHWISE_ENTRY
  return entries;
}

absl::Span<const NetworkEntry* const> NetworkEntries() {
  return EveryNetworkEntry().first(EveryNetworkEntry().size() - 1);
}

}  // namespace lengthwise::models
