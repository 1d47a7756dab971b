// Recurrent networks of Neural Networks and the Chomsky Hierarchy (Deletang et al. 2023, arXiv
// 2207.02098), as in its published code. They read one token in each step. The tokens
// are the input, `computation_steps` computation tokens for each token of the input, and the empty
// tokens; the answers are those of the steps that read an empty token.
//
//   h_t = cell(x_t, r_t, h_{t-1}),  r_{t+1} = memory(h_t),  logits_t = relu(h_t) W + b
//
// x is one-hot, and h_0, r_0 and the memory start as zeros. The cell is one of
//   RNN (Elman 1990):   h_t = relu([x_t, r_t] W_x + b_x + h_{t-1} W_h + b_h)
//   LSTM (Hochreiter and Schmidhuber 1997):  i, g, f, o = [x_t, r_t, h_{t-1}] W + b;
//     c_t = sigmoid(f + 1) c_{t-1} + sigmoid(i) tanh(g);  h_t = sigmoid(o) tanh(c_t)
// and the memory, which is read before it is written, one of
//   none;
//   stacks of D rows (Joulin and Mikolov 2015):  v = h W_v + b_v;  one softmax over the actions of
//     all stacks, a = softmax(h W_a + b_a), gives each stack push, pop and keep;
//     S'[0] = push v + pop S[1] + keep S[0],  S'[i] = push S[i-1] + pop S[i+1] + keep S[i], where
//     S[D] = 0;  r: the top rows S[0];
//   tapes of M rows (after Suzgun et al. 2019):  v = mlp(h) overwrites row 0, and the tape T turns
//     as a ring: T'[m] = a_0 T[m] + a_1 T[m+1] + a_2 T[m-1] + a_3 T[m+n] + a_4 T[m-n] with the
//     input's length n and, for each tape, a = softmax(h W_a + b_a);  r: the rows T[0];
//   a nondeterministic stack (DuSell and Chiang 2020), see NondeterministicStack.
//
// Weights start as N(0, 1/fan_in) truncated at two standard deviations, biases as zero.
#include "models/networks/recurrent.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ATen/ops/cat.h"
#include "ATen/ops/full.h"
#include "ATen/ops/roll.h"
#include "ATen/ops/sigmoid.h"
#include "ATen/ops/zeros.h"
#include "absl/strings/str_cat.h"
#include "models/layers/dropout.h"
#include "models/layers/layers.h"
#include "models/layers/products.h"
#include "models/networks/catalogue.h"
#include "models/networks/factory.h"
#include "models/networks/parameterized_layers.h"

namespace lengthwise::models {
namespace {

// A memory's contents in a forward pass.
struct Contents {
  at::Tensor reading;  // [P, B, 1, R]
  // Stacks [P, B, K, D, C], tapes [P, B, K, M, C], or weights of a nondeterministic stack's runs.
  at::Tensor cells;
  // Of a nondeterministic stack alone.
  at::Tensor last, tops;
};

class Memory {
 public:
  virtual ~Memory() = default;

  // R, numbers of a reading.
  virtual int64_t reading_size() const = 0;
  // True if the contents have numbers for each pair of tokens.
  virtual bool HoldsPairs() const { return false; }
  // Contents of `sequences` for each member before the first step, but for the reading.
  virtual void Start(int64_t /*members*/, int64_t /*sequences*/, const at::TensorOptions& /*like*/,
                     Contents& /*contents*/) const {}
  // Replaces the contents by those after a step with hidden state `h` [P, B, 1, H], in sequences
  // with `n` input tokens.
  virtual void Write(const ParameterSet& parameters, const at::Tensor& h, int64_t n,
                     Contents& contents) const = 0;
};

class NoMemory : public Memory {
 public:
  int64_t reading_size() const override { return 0; }
  void Write(const ParameterSet& /*parameters*/, const at::Tensor& /*h*/, int64_t /*n*/,
             Contents& /*contents*/) const override {}
};

// Stacks or tapes: K lists of vectors of C numbers, of which each first one is read.
class Lists : public Memory {
 public:
  Lists(int64_t lists, int64_t rows, int64_t columns)
      : lists_(lists), rows_(rows), columns_(columns) {}

  int64_t reading_size() const override { return lists_ * columns_; }

  void Start(int64_t members, int64_t sequences, const at::TensorOptions& like,
             Contents& contents) const override {
    contents.cells = at::zeros({members, sequences, lists_, rows_, columns_}, like);
  }

  void Write(const ParameterSet& parameters, const at::Tensor& h, int64_t n,
             Contents& contents) const override {
    const int64_t members = h.size(0), sequences = h.size(1);
    contents.cells = Changed(contents.cells,
                             Value(parameters, h).view({members, sequences, lists_, 1, columns_}),
                             Actions(parameters, h).view({members, sequences, lists_, -1}), n);
    contents.reading =
        contents.cells.select(3, 0).reshape({members, sequences, 1, lists_ * columns_});
  }

 protected:
  // [P, B, 1, K * C]
  virtual at::Tensor Value(const ParameterSet& parameters, const at::Tensor& h) const = 0;
  // Weights of each list's actions, in the order of the lists.
  virtual at::Tensor Actions(const ParameterSet& parameters, const at::Tensor& h) const = 0;
  // `value` [P, B, K, 1, C], `actions` [P, B, K, A].
  virtual at::Tensor Changed(const at::Tensor& cells, const at::Tensor& value,
                             const at::Tensor& actions, int64_t n) const = 0;

  static at::Tensor Weight(const at::Tensor& actions, int64_t action) {
    return actions.narrow(3, action, 1).unsqueeze(4);
  }

  const int64_t lists_, rows_, columns_;
};

class Stacks : public Lists {
 public:
  Stacks(const catalogue::Parameters& parameters, int64_t hidden, ParameterLayout& layout)
      : Lists(parameters.Int("stacks"), parameters.Int("stack_size"),
              parameters.Int("stack_cell_size")),
        value_(AddHaikuLayer(layout, "push_value", hidden, lists_ * columns_)),
        action_(AddHaikuLayer(layout, "stack_action", hidden, 3 * lists_)) {}

 private:
  at::Tensor Value(const ParameterSet& parameters, const at::Tensor& h) const override {
    return value_(parameters, h);
  }

  at::Tensor Actions(const ParameterSet& parameters, const at::Tensor& h) const override {
    return action_(parameters, h).softmax(-1);
  }

  at::Tensor Changed(const at::Tensor& cells, const at::Tensor& value, const at::Tensor& actions,
                     int64_t /*n*/) const override {
    const at::Tensor pushed = at::cat({value, cells.narrow(3, 0, rows_ - 1)}, 3);
    const at::Tensor popped =
        at::cat({cells.narrow(3, 1, rows_ - 1), at::zeros(value.sizes(), value.options())}, 3);
    return pushed.mul(Weight(actions, 0))
        .add(popped.mul(Weight(actions, 1)))
        .add(cells.mul(Weight(actions, 2)));
  }

  LinearLayer value_, action_;
};

class Tapes : public Lists {
 public:
  Tapes(const catalogue::Parameters& parameters, int64_t hidden, ParameterLayout& layout)
      : Lists(parameters.Int("tapes"), parameters.Int("memory_size"),
              parameters.Int("memory_cell_size")) {
    std::vector<int64_t> sizes = *WriteLayers(parameters.String("write_layers"));
    sizes.push_back(lists_ * columns_);
    int64_t inputs = hidden;
    for (const int64_t size : sizes) {
      write_.push_back(
          AddHaikuLayer(layout, absl::StrCat("write_mlp_", write_.size()), inputs, size));
      inputs = size;
    }
    for (int64_t k = 0; k < lists_; ++k) {
      actions_.push_back(AddHaikuLayer(layout, absl::StrCat("tape_action_", k), hidden, 5));
    }
  }

 private:
  at::Tensor Value(const ParameterSet& parameters, const at::Tensor& h) const override {
    at::Tensor value = write_.front()(parameters, h);
    for (size_t i = 1; i < write_.size(); ++i) value = write_[i](parameters, value.relu());
    return value;
  }

  at::Tensor Actions(const ParameterSet& parameters, const at::Tensor& h) const override {
    std::vector<at::Tensor> actions;
    for (const LinearLayer& action : actions_) actions.push_back(action(parameters, h).softmax(-1));
    return at::cat(actions, 3);
  }

  at::Tensor Changed(const at::Tensor& cells, const at::Tensor& value, const at::Tensor& actions,
                     int64_t n) const override {
    const at::Tensor written = at::cat({value, cells.narrow(3, 1, rows_ - 1)}, 3);
    at::Tensor turned = written.mul(Weight(actions, 0));
    int64_t action = 1;
    for (const int64_t rows : {int64_t{-1}, int64_t{1}, -n, n}) {
      turned = turned.add(at::roll(written, rows, 3).mul(Weight(actions, action++)));
    }
    return turned;
  }

  std::vector<LinearLayer> write_, actions_;
};

// All runs of a pushdown automaton with Q states and S symbols at once. An index below is a pair of
// a state and a symbol, state first. With one softmax over all actions, at step t = 1, 2, ...:
//
//   gamma[i][t][qx][ry], the weight of the runs from time i, in state q with x on top, to time t,
//   in state r, that put exactly y on that x:
//     if i = t-1:  push[qx][ry]
//     + sum_sz gamma[i][t-1][qx][sz] replace[sz][ry]
//     + sum_k,u,s,z gamma[i][k][qx][uy] gamma[k][t-1][uy][sz] pop[sz][r]    for i < k < t-1
//   alpha[t][ry] = sum_i,qx alpha[i][qx] gamma[i][t][qx][ry],  alpha[0] = 1 for state 0, symbol 0
//
// It reads alpha[t], or its sums over states, divided by the total + 0.001.
class NondeterministicStack : public Memory {
 public:
  NondeterministicStack(const catalogue::Parameters& parameters, int64_t hidden,
                        ParameterLayout& layout)
      : states_(parameters.Int("stack_states")),
        symbols_(parameters.Int("stack_symbols")),
        pairs_(states_ * symbols_),
        reads_states_(parameters.Bool("read_states")),
        action_(AddHaikuLayer(layout, "stack_action", hidden, pairs_ * (2 * pairs_ + states_))) {}

  int64_t reading_size() const override { return reads_states_ ? pairs_ : symbols_; }
  bool HoldsPairs() const override { return true; }

  // `tops` are alpha[0] to alpha[t], [P, B, 1, (t+1) QS]. `last` is gamma[i][t] for i < t,
  // [P, B, t, QS, QS]. `cells` are gamma[i][k] for i < k < t, zero for i >= k, as matrices for each
  // symbol y, [P, B, S, (t-1) QS, (t-1) Q].
  void Start(int64_t members, int64_t sequences, const at::TensorOptions& like,
             Contents& contents) const override {
    contents.tops = at::zeros({members, sequences, 1, pairs_}, like);
    contents.tops.narrow(3, 0, 1).fill_(1);
    contents.last = at::zeros({members, sequences, 0, pairs_, pairs_}, like);
    contents.cells = at::zeros({members, sequences, symbols_, 0, 0}, like);
  }

  void Write(const ParameterSet& parameters, const at::Tensor& h, int64_t /*n*/,
             Contents& contents) const override {
    const int64_t members = h.size(0), sequences = h.size(1);
    const std::vector<at::Tensor> actions =
        action_(parameters, h)
            .softmax(-1)
            .squeeze(2)
            .split_with_sizes({pairs_ * pairs_, pairs_ * states_, pairs_ * pairs_}, 2);
    at::Tensor row = actions[0].view({members, sequences, 1, pairs_, pairs_});
    const int64_t before = contents.last.size(2);  // t - 1
    if (before > 0) {
      const at::Tensor from = contents.last.flatten(2, 3);
      at::Tensor kept = MatrixProduct(from, actions[2].view({members, sequences, pairs_, pairs_}))
                            .view({members, sequences, before, pairs_, pairs_});
      if (before > 1) {
        // By k, u, y and r.
        const at::Tensor popped =
            MatrixProduct(from, actions[1].view({members, sequences, pairs_, states_}))
                .view({members, sequences, before, states_, symbols_, states_})
                .narrow(2, 1, before - 1);
        // By y, i, qx and r.
        const at::Tensor uncovered =
            MatrixProduct(contents.cells, popped.permute({0, 1, 4, 2, 3, 5}).flatten(3, 4))
                .view({members, sequences, symbols_, before - 1, pairs_, states_});
        kept = at::cat(
            {kept.narrow(2, 0, before - 1).add(uncovered.permute({0, 1, 3, 4, 5, 2}).flatten(4, 5)),
             kept.narrow(2, before - 1, 1)},
            2);
      }
      contents.cells = WithColumn(contents.cells, contents.last);
      row = at::cat({kept, row}, 2);
    }
    contents.last = row;
    const at::Tensor top = MatrixProduct(contents.tops, row.flatten(2, 3));
    contents.tops = at::cat({contents.tops, top}, 3);
    const at::Tensor read =
        reads_states_ ? top : top.view({members, sequences, 1, states_, symbols_}).sum(3);
    contents.reading = read.div(read.sum(3, true).add(1e-3));
  }

 private:
  // Appends gamma[i][t] for i < t.
  at::Tensor WithColumn(const at::Tensor& cells, const at::Tensor& last) const {
    const int64_t members = last.size(0), sequences = last.size(1), t = last.size(2);
    const at::Tensor column = last.view({members, sequences, t, pairs_, states_, symbols_})
                                  .permute({0, 1, 5, 2, 3, 4})
                                  .flatten(3, 4);
    const at::Tensor absent =
        at::zeros({members, sequences, symbols_, pairs_, cells.size(4)}, cells.options());
    return at::cat({at::cat({cells, absent}, 3), column}, 4);
  }

  int64_t states_, symbols_, pairs_;
  bool reads_states_;
  LinearLayer action_;
};

class RecurrentNetwork : public Network {
 public:
  // `memory` has added its parameters to the layout.
  RecurrentNetwork(const NetworkParts& parts, bool is_lstm, std::unique_ptr<Memory> memory)
      : hidden_(parts.parameters.Int("hidden_size")),
        computation_steps_(parts.parameters.Int("computation_steps")),
        columns_(parts.shape.input_columns + (computation_steps_ > 0 ? 1 : 0)),
        memory_(std::move(memory)) {
    const int64_t inputs = columns_ + memory_->reading_size();
    if (is_lstm) {
      input_ = AddHaikuLayer(parts.layout, "cell_gates", inputs + hidden_, 4 * hidden_);
    } else {
      input_ = AddHaikuLayer(parts.layout, "cell_input", inputs, hidden_);
      recurrent_ = AddHaikuLayer(parts.layout, "cell_hidden", hidden_, hidden_);
    }
    output_ = AddHaikuLayer(parts.layout, "output", hidden_, parts.shape.output_columns);
  }

  at::Tensor Forward(const ParameterSet& parameters, const NetworkInput& input,
                     const at::Tensor& /*positions*/, int64_t output_length,
                     const DropoutNumbers* dropout, Capture* capture) const override {
    const int64_t n = input.tokens.size(2) - output_length;
    const at::Tensor tokens =
        WithComputationTokens(input.tokens, n, computation_steps_, columns_ - 2);
    const int64_t members = tokens.size(0), sequences = tokens.size(1), steps = tokens.size(2);
    at::Tensor weight = parameters[input_.weight], bias = parameters[*input_.bias];
    if (recurrent_.has_value()) {
      weight = at::cat({weight, parameters[recurrent_->weight]}, 1);
      bias = bias.add(parameters[*recurrent_->bias]);
    }
    const at::Tensor read =
        AddEmbeddingNoise(Embed(tokens, weight.narrow(1, 0, columns_)), dropout);
    // The rows of the weight that read the memory and the state before.
    weight = weight.narrow(1, columns_, weight.size(1) - columns_).contiguous();
    const std::vector<at::Tensor> inputs = read.add(bias.unsqueeze(1).unsqueeze(1)).split(1, 2);

    const auto zeros = [&](int64_t size) {
      return at::zeros({members, sequences, 1, size}, read.options());
    };
    Contents contents{.reading = zeros(memory_->reading_size())};
    memory_->Start(members, sequences, read.options(), contents);
    at::Tensor h = zeros(hidden_), c = h;
    std::vector<at::Tensor> states;
    for (const at::Tensor& x : inputs) {
      const at::Tensor z = x.add(Linear(at::cat({contents.reading, h}, 3), weight));
      if (recurrent_.has_value()) {
        h = z.relu();
      } else {
        const std::vector<at::Tensor> gates = z.split(hidden_, 3);
        c = gates[2].add(1).sigmoid().mul(c).add(gates[0].sigmoid().mul(gates[1].tanh()));
        h = gates[3].sigmoid().mul(c.tanh());
      }
      states.push_back(h);
      memory_->Write(parameters, h, n, contents);
    }
    if (capture != nullptr) {
      for (const at::Tensor& depth : {read, at::cat(states, 2)}) {
        capture->depths.push_back(at::cat(
            {depth.narrow(2, 0, n), depth.narrow(2, steps - output_length, output_length)}, 2));
      }
    }
    states.erase(states.begin(), states.end() - output_length);
    return output_(parameters, at::cat(states, 2).relu());
  }

  bool HoldsLogits(const at::Tensor& /*sample*/) const override { return memory_->HoldsPairs(); }

 private:
  int64_t hidden_;
  int64_t computation_steps_;
  // Symbols of the one-hot input.
  int64_t columns_;
  std::unique_ptr<Memory> memory_;
  // Of an LSTM, all gates read input and state; an RNN's state has a layer of its own.
  LinearLayer input_;
  std::optional<LinearLayer> recurrent_;
  LinearLayer output_;
};

template <typename MemoryType>
std::unique_ptr<Network> MakeWithMemory(const NetworkParts& parts) {
  return std::make_unique<RecurrentNetwork>(
      parts, parts.parameters.String("cell") == "lstm",
      std::make_unique<MemoryType>(parts.parameters, parts.parameters.Int("hidden_size"),
                                   parts.layout));
}

}  // namespace

at::Tensor WithComputationTokens(const at::Tensor& tokens, int64_t n, int64_t steps,
                                 int64_t empty) {
  if (steps == 0) return tokens;
  const at::Tensor computation =
      at::full({tokens.size(0), tokens.size(1), steps * n}, empty, tokens.options());
  return at::cat(
      {tokens.narrow(2, 0, n), computation, tokens.narrow(2, n, tokens.size(2) - n).add(1)}, 2);
}

std::unique_ptr<Network> CreateRnn(const NetworkParts& parts) {
  return std::make_unique<RecurrentNetwork>(parts, /*is_lstm=*/false, std::make_unique<NoMemory>());
}
std::unique_ptr<Network> CreateLstm(const NetworkParts& parts) {
  return std::make_unique<RecurrentNetwork>(parts, /*is_lstm=*/true, std::make_unique<NoMemory>());
}
std::unique_ptr<Network> CreateStackRnn(const NetworkParts& parts) {
  return MakeWithMemory<Stacks>(parts);
}
std::unique_ptr<Network> CreateNondeterministicStackRnn(const NetworkParts& parts) {
  return MakeWithMemory<NondeterministicStack>(parts);
}
std::unique_ptr<Network> CreateTapeRnn(const NetworkParts& parts) {
  return MakeWithMemory<Tapes>(parts);
}

}  // namespace lengthwise::models
