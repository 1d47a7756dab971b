// Runs a fuzz target on its corpus and on a few thousand reproducible mutations. Add inputs that
// libFuzzer finds to the corpus, as regression tests.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace lengthwise {
namespace {

void Try(const std::string& input) {
  // Copies to an exact-size buffer, so that AddressSanitizer detects reads past the end.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

std::vector<std::string> ReadCorpus(const std::string& directory) {
  std::vector<std::string> corpus;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::ifstream file(entry.path(), std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  std::string Mutate(std::string input, const std::string& other) {
    for (uint64_t changes = 1 + random_() % 4; changes > 0; --changes) {
      const size_t at = Below(input.size() + 1);
      const size_t length = Below(std::min<size_t>(input.size() - at, 16) + 1);
      switch (random_() % 6) {
        case 0:
          input.erase(at, length);
          break;
        case 1:
          input.insert(at, input.substr(at, length));
          break;
        case 2:
          input.insert(at, 1, static_cast<char>(random_()));
          break;
        case 3:
          if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << random_() % 8));
          break;
        case 4: {
          static const std::vector<std::string> kSpecial = {std::string(8, '\xff'),
                                                            std::string(4, '\0'),
                                                            "-1",
                                                            "99999999999999999999",
                                                            "1e999",
                                                            "{",
                                                            "[",
                                                            "\"",
                                                            ":",
                                                            "\n",
                                                            "\x80",
                                                            "&a",
                                                            "*a"};
          input.replace(at, length, kSpecial[Below(kSpecial.size())]);
          break;
        }
        default: {
          const size_t from = Below(other.size() + 1);
          input = input.substr(0, at) + other.substr(from);
        }
      }
    }
    return input;
  }
  size_t Below(size_t end) { return random_() % end; }

 private:
  std::mt19937_64 random_;
};

TEST(CorpusTest, SurvivesCorpusAndMutations) {
  const char* directory = std::getenv("LENGTHWISE_CORPUS");
  ASSERT_NE(directory, nullptr);
  const std::vector<std::string> corpus = ReadCorpus(directory);
  ASSERT_GE(corpus.size(), 3U) << "no corpus in " << directory;
  Try("");
  for (const std::string& input : corpus) Try(input);
  Mutator mutator(20261121);
  for (int i = 0; i < 3000; ++i) {
    Try(mutator.Mutate(corpus[mutator.Below(corpus.size())], corpus[mutator.Below(corpus.size())]));
  }
}

}  // namespace
}  // namespace lengthwise
