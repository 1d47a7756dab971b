#include "client/display/shaded_grid.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lengthwise::client {
namespace {

constexpr const char* kShades[] = {" ", "░", "▒", "▓", "█"};
constexpr int kShadeCount = 5;

// Shades without colours. With colours the terminal's 24 greys are used.
constexpr int kFirstGrey = 232;
constexpr int kGreyCount = 24;

// Returns the darkness of `value`, from 0 to `levels` - 1.
template <typename Number>
int Level(Number value, Number smallest, Number largest, int levels) {
  if (!(largest > smallest)) return 0;
  const Number share = (value - smallest) / (largest - smallest);
  return std::clamp(static_cast<int>(share * static_cast<Number>(levels - 1) + Number{0.5}), 0,
                    levels - 1);
}

// Writes one place after another. Emits an escape sequence only when the level changes.
class Shading {
 public:
  explicit Shading(bool greys) : greys_(greys) {}

  template <typename Number>
  void Add(Number value, Number smallest, Number largest, int characters, std::string& line) {
    if (!greys_) {
      line += Repeat(kShades[Level(value, smallest, largest, kShadeCount)], characters);
      return;
    }
    const int grey = kFirstGrey + Level(value, smallest, largest, kGreyCount);
    if (grey != grey_) absl::StrAppend(&line, "\x1b[48;5;", grey, "m");
    grey_ = grey;
    line.append(static_cast<size_t>(characters), ' ');
  }
  void End(std::string& line) {
    if (grey_ != 0) line += "\x1b[0m";
    grey_ = 0;
  }

 private:
  const bool greys_;
  int grey_ = 0;
};

// "0 ░▒▓█ 0.42": the values of the shades.
std::string Legend(float largest, bool greys) {
  std::string legend = "0 ";
  Shading shading(greys);
  const int steps = greys ? kGreyCount / 2 : kShadeCount;
  for (int i = 0; i < steps; ++i) {
    shading.Add(static_cast<float>(i) / static_cast<float>(steps - 1), 0.0F, 1.0F, 1, legend);
  }
  shading.End(legend);
  return absl::StrCat(legend, absl::StrFormat(" %.2f", largest));
}

// Scale of a grid: each place shows the maximum of `columns` x `rows` numbers.
struct Scale {
  int columns = 1;
  int rows = 1;
  int characters = 2;  // per place, so that it is about square
};

// Characters are twice as high as wide, so a place of one character covers twice as many rows as
// columns.
Scale FitScale(int columns, int width) {
  const int room = std::max(10, width - 2);
  if (2 * columns <= room) return {};
  const int shared = (columns + room - 1) / room;
  return {.columns = shared, .rows = 2 * shared, .characters = 1};
}

float Largest(const v1::AttentionMap& map, int layer, const AttentionView& view, int query,
              int key) {
  if (view.head > 0) return ProbabilityAt(map, layer, view.head - 1, query, key);
  float largest = 0;
  for (int head = 0; head < map.heads(); ++head) {
    largest = std::max(largest, ProbabilityAt(map, layer, head, query, key));
  }
  return largest;
}

// Returns the frame's upper or lower line, with a tick at the first output token.
std::string FrameLine(const char* left, const char* tick, const char* right, int columns,
                      int boundary) {
  if (boundary <= 0 || boundary >= columns) {
    return absl::StrCat(left, Repeat("─", columns), right, "\n");
  }
  return absl::StrCat(left, Repeat("─", boundary), tick, Repeat("─", columns - boundary - 1), right,
                      "\n");
}

// Returns the number of input tokens. `map.length()` may be a length that a file states instead.
int InputTokens(const v1::AttentionMap& map, const AttentionView& view) {
  const auto& tokens = map.tokens();
  if (!view.has_outputs || tokens.empty()) return tokens.size();
  return static_cast<int>(std::find(tokens.begin(), tokens.end(), *tokens.rbegin()) -
                          tokens.begin());
}

// Draws `rows` x `columns` values in a frame; each place shows the maximum of those that share it.
// Ticks on the frame mark the row and the column `boundary`; 0: none.
template <typename Number>
std::string Draw(const std::vector<Number>& values, int rows, int columns, Number smallest,
                 Number largest, int boundary, int width, bool greys) {
  const Scale scale = FitScale(columns, width);
  const int frame = (columns + scale.columns - 1) / scale.columns * scale.characters;
  const int tick = boundary / scale.columns * scale.characters;
  std::string text = FrameLine("┌", "┬", "┐", frame, tick);
  Shading shading(greys);
  for (int row = 0; row < rows; row += scale.rows) {
    const bool ticked =
        boundary > 0 && boundary < rows && row / scale.rows == boundary / scale.rows;
    text += ticked ? "├" : "│";
    for (int column = 0; column < columns; column += scale.columns) {
      Number shown = smallest;
      for (int r = row; r < std::min(row + scale.rows, rows); ++r) {
        for (int c = column; c < std::min(column + scale.columns, columns); ++c) {
          shown = std::max(shown, values[static_cast<size_t>(r) * columns + c]);
        }
      }
      shading.Add(shown, smallest, largest, scale.characters, text);
    }
    shading.End(text);
    text += ticked ? "┤\n" : "│\n";
  }
  return text + FrameLine("└", "┴", "┘", frame, tick);
}

std::string RenderLayer(const v1::AttentionMap& map, int layer, const AttentionView& view,
                        int width, const Palette& palette) {
  const int tokens = map.tokens_size();
  std::vector<float> values;
  float darkest = 0;
  for (int query = 0; query < tokens; ++query) {
    for (int key = 0; key < tokens; ++key) {
      values.push_back(Largest(map, layer, view, query, key));
      darkest = std::max(darkest, values.back());
    }
  }
  const std::string heads = view.head > 0 ? absl::StrCat("head ", view.head, " of ", map.heads())
                                          : absl::StrCat("maximum over ", map.heads(), " heads");
  return absl::StrCat(
      palette(Paint::kBold, absl::StrCat("layer ", layer + 1, " of ", map.layers())), ", ", heads,
      ", ", Legend(darkest, palette.enabled()), "\n",
      Draw(values, tokens, tokens, 0.0F, darkest, InputTokens(map, view), width,
           palette.enabled()));
}

}  // namespace

absl::Status CheckProbabilities(const v1::AttentionMap& map) {
  const int64_t tokens = map.tokens_size();
  const int64_t wanted =
      int64_t{map.layers()} * map.heads() * tokens * tokens * static_cast<int64_t>(sizeof(float));
  if (static_cast<int64_t>(map.probabilities().size()) == wanted) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the attention map of length ", map.length(), " has ",
                                          map.probabilities().size(), " bytes, expected ", wanted));
}

float ProbabilityAt(const v1::AttentionMap& map, int layer, int head, int query, int key) {
  const size_t tokens = static_cast<size_t>(map.tokens_size());
  const size_t index =
      ((static_cast<size_t>(layer) * map.heads() + head) * tokens + query) * tokens + key;
  float value = 0;
  std::memcpy(&value, map.probabilities().data() + index * sizeof(float), sizeof(float));
  return value;
}

std::string RenderAttention(const v1::AttentionMap& map, const AttentionView& view, int width,
                            const Palette& palette) {
  // A user's own input has neither a scale nor a condition.
  const std::string which = view.axis != "length" && map.input_number() > 0
                                ? absl::StrCat("input ", map.input_number())
                                : absl::StrCat(view.axis, " ", map.length());
  const int inputs = InputTokens(map, view);
  const std::string title = absl::StrCat(
      palette(Paint::kBold, which), ": ",
      view.has_outputs
          ? absl::StrCat(inputs, " input and ", map.tokens_size() - inputs,
                         " output tokens; rows are queries, columns keys; ticks mark the first "
                         "output token")
          : absl::StrCat(map.tokens_size(), " tokens; rows are queries, columns keys"));
  std::string text = Wrap(title, width, 0) + "\n";
  for (int layer = 0; layer < map.layers(); ++layer) {
    if (view.layer > 0 && view.layer != layer + 1) continue;
    absl::StrAppend(&text, RenderLayer(map, layer, view, width, palette));
  }
  return text + "\n";
}

std::string RenderGrid(const NumberGrid& grid, int width, const Palette& palette) {
  const auto [smallest, largest] = std::minmax_element(grid.values.begin(), grid.values.end());
  std::string legend;
  for (const char* shade : kShades) legend += shade;
  // Adding 0.0 turns -0 into 0.
  return absl::StrCat(palette(Paint::kBold, grid.title), ", ",
                      absl::StrFormat("%.4g ", *smallest + 0.0), legend,
                      absl::StrFormat(" %.4g", *largest + 0.0), "; rows ", grid.row_name,
                      ", columns ", grid.column_name, "\n",
                      Draw(grid.values, static_cast<int>(grid.rows), static_cast<int>(grid.columns),
                           *smallest, *largest, /*boundary=*/0, width, /*greys=*/false));
}

}  // namespace lengthwise::client
