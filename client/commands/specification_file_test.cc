// Specifications whose task is a file of examples, checked and shown without a server.
#include "client/commands/specification_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/commands/program.h"
#include "client/commands/testing/commands_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kTrain[] =
    "{\"input\": [3, 1, 2], \"target\": [1, 2, 3]}\n{\"input\": [0, 1], \"target\": [0, 1]}\n";
constexpr char kTest[] = "{\"input\": [2, 1, 0, 3], \"target\": [0, 1, 2, 3]}\n";

class ExampleFilesTest : public CommandsTest {
 protected:
  // Writes a specification next to the files `train` and `test`.
  std::string Specification(const std::string& task, const std::string& rest = "",
                            const std::string& network = "encoder") {
    File("my_train.jsonl", kTrain);
    File("my_test.jsonl", kTest);
    return File("my.yaml", "name: mine\ntasks: {name: examples" + task +
                               "}\nnetworks: {name: " + network +
                               (network == "encoder" ? ", blocks: 1, heads: 2, d_model: 16" : "") +
                               "}\nencodings: " + (network == "encoder" ? "sin_cos" : "one_hot") +
                               "\nlearning_rates: 0.001\ntraining: {steps: 10" + rest + "}\n");
  }
  static constexpr char kFiles[] = ", label: my_task, train: my_train.jsonl, test: my_test.jsonl";
};

TEST(ReadySpecificationTest, CheckoutHasItsExperiments) {
  const std::filesystem::path before = std::filesystem::current_path();
  const std::filesystem::path checkout = testing::TempDir() + "/checkout";
  std::filesystem::create_directories(checkout / "experiments/published");
  std::filesystem::create_directories(checkout / "docs/deep");
  std::ofstream(checkout / "experiments/mine.yaml") << "name: mine\n";
  std::filesystem::current_path(checkout / "docs/deep");
  EXPECT_EQ(ReadySpecification("mine"), "") << "a folder of the user's own";
  std::ofstream(checkout / "experiments/published/papers.json") << "{}";
  EXPECT_EQ(ReadySpecification("mine"), checkout / "experiments/mine.yaml");
  EXPECT_EQ(ReadySpecification("other"), "");
  std::filesystem::current_path(before);
}

TEST(ReadySpecificationTest, MissingTargetOfALinkIsNotSuggested) {
  const std::string link = testing::TempDir() + "/link.yaml";
  std::filesystem::create_symlink("link.yaml", link);
  const absl::Status loop = ReadSpecification(link).status();
  EXPECT_THAT(std::string(loop.message()), Not(HasSubstr("did you mean")));
  std::filesystem::remove(link);
  std::filesystem::create_symlink("nowhere.yaml", link);
  const absl::Status dangling = ReadSpecification(link).status();
  EXPECT_THAT(std::string(dangling.message()), Not(HasSubstr("did you mean")));
  std::filesystem::remove(link);
}

TEST_F(ExampleFilesTest, TextIsSentUnlessItNamesFiles) {
  v1::CreateExperimentRequest request;
  const auto plain = ResolveFile(File("plain.yaml", kSpecification));
  ASSERT_TRUE(plain.ok()) << plain.status();
  SetSpecification(*plain, request);
  EXPECT_EQ(request.specification_text().text(), kSpecification);
  const auto with_files = ResolveFile(Specification(kFiles));
  ASSERT_TRUE(with_files.ok()) << with_files.status();
  SetSpecification(*with_files, request);
  EXPECT_FALSE(request.has_specification_text());
  EXPECT_EQ(request.specification().tasks(0).label(), "my_task");
}

TEST_F(ExampleFilesTest, ValidateSummarizesTheFiles) {
  ASSERT_EQ(Run({"validate", Specification(kFiles)}), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("1 trial in 1 pack"),
                          HasSubstr("my_task: trains on 2 examples of lengths 2..3; tests on 1 "
                                    "example of lengths 4; 4 input symbols, 4 target symbols"),
                          HasSubstr("warning: my_test.jsonl has fewer than 20 test examples of "
                                    "lengths 4: their accuracies are coarse")));
}

TEST_F(ExampleFilesTest, ValidateNamesEveryBadLine) {
  const std::string path = Specification(kFiles);
  File("my_train.jsonl",
       std::string(kTrain) + "{\"input\": [1], \"target\": [1, 1]}\n{\"input\": ");
  EXPECT_EQ(Run({"validate", path}), 2);
  EXPECT_THAT(err_, AllOf(HasSubstr("my_train.jsonl:4: column 11: not JSON"),
                          HasSubstr("my_train.jsonl:3: target has 2 symbols, expected 1, as the "
                                    "input"),
                          Not(HasSubstr("tasks[0].train")), Not(HasSubstr("evaluation"))));
}

TEST_F(ExampleFilesTest, ValidateWarnsOfTestExamplesInTraining) {
  const std::string path = Specification(kFiles);
  File("my_test.jsonl", std::string(kTest) + kTrain);
  ASSERT_EQ(Run({"validate", path}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("warning: my_test.jsonl:2: this input and 1 more"));
}

TEST_F(ExampleFilesTest, LengthsWithoutExamplesAreNamed) {
  EXPECT_EQ(Run({"validate", Specification(kFiles, ", lengths: 5..9")}), 2);
  EXPECT_THAT(err_, HasSubstr("training.lengths: got 5..9, my_train.jsonl has training examples of "
                              "lengths 2..3"));
  std::string path = Specification(kFiles, "}\nevaluation: {lengths: [4, 6]");
  EXPECT_EQ(Run({"validate", path}), 2);
  EXPECT_THAT(err_, HasSubstr("evaluation.lengths: got 6, my_test.jsonl has test examples of "
                              "lengths 4"));
}

TEST_F(ExampleFilesTest, FolderOfANetworkIsReadWhole) {
  const std::string folder = testing::TempDir() + "/my net";
  std::filesystem::create_directories(folder + "/data");
  const std::string path = File("net.yaml",
                                "name: mine\ntasks: reverse_string\nnetworks: {name: python, file: "
                                "my net, class: Net}\nencodings: own\nlearning_rates: 0.001\n"
                                "training: {steps: 10, lengths: 1..2}\nevaluation: {lengths: 2}\n");
  EXPECT_EQ(Run({"validate", path}), 2);
  EXPECT_THAT(err_, HasSubstr("my net has no __init__.py, which has the class"));
  std::ofstream(folder + "/__init__.py") << "from .json import Net\n";
  std::ofstream(folder + "/json.py") << "class Net: pass\n";
  std::filesystem::create_symlink("nowhere", folder + "/data/dangling");
  EXPECT_EQ(Run({"validate", path}), 0) << err_;
  std::ofstream(folder + "/data/\xfc") << "";
  EXPECT_EQ(Run({"validate", path}), 2);
  EXPECT_THAT(err_, HasSubstr("data/\\xfc in it has a name that is not UTF-8: rename it"));
}

TEST_F(ExampleFilesTest, MistakesInTheTaskAreNamed) {
  EXPECT_EQ(Run({"validate", Specification("")}), 2);
  EXPECT_THAT(err_, HasSubstr("tasks[0].train: required"));
  EXPECT_EQ(Run({"validate", Specification(", train: nowhere.jsonl")}), 2);
  EXPECT_THAT(err_, HasSubstr("tasks[0].train: cannot read "));
  EXPECT_THAT(err_, HasSubstr("nowhere.jsonl: No such file or directory; a relative path begins at "
                              "the specification's folder"));
  EXPECT_EQ(Run({"validate", Specification(", train: my_train.jsonl, test: mytest.jsonl")}), 2);
  EXPECT_THAT(err_, AllOf(HasSubstr("tasks[0].test: cannot read "),
                          HasSubstr("; did you mean \"my_test.jsonl\"?")));
  // A file that is there is not replaced by another.
  std::filesystem::create_symlink("mytrain.jsonl", testing::TempDir() + "/mytrain.jsonl");
  EXPECT_EQ(Run({"validate", Specification(", train: mytrain.jsonl")}), 2);
  EXPECT_THAT(err_, AllOf(HasSubstr("Too many levels"), Not(HasSubstr("did you mean"))));
  EXPECT_EQ(Run({"validate", Specification(", trian: my_train.jsonl")}), 2);
  EXPECT_THAT(err_, HasSubstr("did you mean \"train\"?"));
  // The file was not read, which is no second mistake.
  EXPECT_EQ(Run({"validate", Specification(", train: my_train.jsonl, tset: my_test.jsonl")}), 2);
  EXPECT_THAT(err_, AllOf(HasSubstr("did you mean \"test\"?"), Not(HasSubstr("tasks[0].train"))));
  EXPECT_EQ(Run({"validate",
                 Specification(std::string(kFiles) + ", train_sha256: " + std::string(64, 'a'))}),
            2);
  EXPECT_THAT(err_, HasSubstr("it is another file"));
  EXPECT_EQ(Run({"validate", Specification(kFiles, ", examples: 100")}), 2);
  EXPECT_THAT(err_, HasSubstr("training.examples: does not apply to a file's examples"));
}

TEST_F(ExampleFilesTest, ErrorConvertsEpochsToSteps) {
  Specification(kFiles);
  const std::string path =
      File("epochs.yaml", std::string("name: mine\ntasks: {name: examples") + kFiles +
                              "}\nencodings: sin_cos\nlearning_rates: 0.001\n"
                              "training: {epochs: 10, batch_size: 4}\n");
  EXPECT_EQ(Run({"validate", path}), 2);
  EXPECT_THAT(err_, AllOf(HasSubstr("training.epochs: every step draws anew from the task's "
                                    "file: set training.steps, 5 for as many examples as "
                                    "10 epochs have"),
                          Not(HasSubstr("training.examples")), Not(HasSubstr("training.steps:"))));
}

TEST_F(ExampleFilesTest, NumbersNeedANumericNetwork) {
  std::string path = Specification(kFiles);
  File("my_train.jsonl", "{\"input\": [0.5, 1], \"target\": [1.5, 1]}\n");
  File("my_test.jsonl", "{\"input\": [0.5, 2], \"target\": [2.5, 2]}\n");
  EXPECT_EQ(Run({"validate", path}), 2);
  EXPECT_THAT(err_, HasSubstr("\"encoder\" cannot learn \"examples_numbers\" (tasks[0]), expected "
                              "\"positional_attention\", \"graph_network\" or \"python\""));
  EXPECT_THAT(err_, HasSubstr("my_train.jsonl:1: has the number 0.5, which makes all values "
                              "numbers; symbols are integers from 0"));
  // A mistake in a file of numbers does not make it one of symbols.
  path = Specification(kFiles, "", "positional_attention");
  File("my_train.jsonl", "{\"input\": [1e30, 1], \"target\": [1.5, 1]}\n");
  EXPECT_EQ(Run({"validate", path}), 2);
  EXPECT_THAT(err_, AllOf(HasSubstr("my_train.jsonl:1: input has the number 1e+30"),
                          Not(HasSubstr("cannot learn"))));
  File("my_train.jsonl", "{\"input\": [0.5, 1], \"target\": [1.5, 1]}\n");
  File("my_test.jsonl", "{\"input\": [0.5, 2], \"target\": [2.5, 2]}\n");
  EXPECT_EQ(Run({"validate", path}), 0) << err_;
}

// NumPy and pandas write 1.0 for a whole number in an array of floats.
TEST_F(ExampleFilesTest, WholeNumbersAreWrittenWithoutFraction) {
  const std::string path = Specification(kFiles);
  const auto said_of = [&](const std::string& number) {
    File("my_train.jsonl", absl::StrCat("{\"input\": [0, ", number, "], \"target\": [1, 1]}\n"));
    EXPECT_EQ(Run({"validate", path}), 2);
    return err_;
  };
  EXPECT_THAT(said_of("1.0"), HasSubstr("my_train.jsonl:1: has the number 1.0, which makes all "
                                        "values numbers; symbols are integers from 0 to 65535: "
                                        "write 1, not 1.0\n"));
  EXPECT_THAT(said_of("99999999999"),
              HasSubstr("has the number 99999999999, which makes all values "
                        "numbers; symbols are integers from 0 to 65535\n"));
  EXPECT_THAT(said_of("1e400"), HasSubstr("column 19: the number 1e400 is too large"));
}

// No shell expands a path in a file.
TEST_F(ExampleFilesTest, TildeIsTheHomeDirectory) {
  const std::string path =
      Specification(", label: my_task, train: ~/my_train.jsonl, test: ~/my_test.jsonl");
  const std::string home = path.substr(0, path.rfind('/'));
  const char* const before = std::getenv("HOME");
  const std::string kept = before == nullptr ? "" : before;
  ASSERT_EQ(setenv("HOME", home.c_str(), 1), 0);
  EXPECT_EQ(Run({"validate", path}), 0) << err_;
  if (before == nullptr) unsetenv("HOME");
  if (before != nullptr) setenv("HOME", kept.c_str(), 1);
}

TEST_F(ExampleFilesTest, LanguageModelsContinueText) {
  const std::string path = Specification(kFiles);
  File("my_train.jsonl", "{\"input\": \"12+7=\", \"target\": \"19\", \"length\": 2}\n");
  File("my_test.jsonl", "{\"input\": \"8+1=\", \"target\": \"9\", \"length\": 1}\n");
  const std::string specification = File(
      "text.yaml", std::string("name: mine\ntasks: {name: examples") + kFiles +
                       "}\nnetworks: {name: causal_decoder, blocks: 1, heads: 2, d_model: 16}\n"
                       "encodings: rope\nlearning_rates: 0.001\ntraining: {steps: 10}\n");
  EXPECT_EQ(Run({"validate", specification}), 2);
  EXPECT_THAT(err_, AllOf(HasSubstr("my_test.jsonl:1: input has the symbol \"8\""),
                          Not(HasSubstr("networks"))));

  File("my_test.jsonl", "{\"input\": \"9+7=\", \"target\": \"+\", \"length\": 1}\n");
  ASSERT_EQ(Run({"sample", specification, "--output", "csv"}), 0) << err_;
  EXPECT_EQ(out_,
            "task,part,length,input,target,reads,answers\n"
            "my_task,train,2,12+7=,19,1 2 0 3 5,1 4 6\n"
            "my_task,test,1,9+7=,+,4 0 3 5,0 6\n");
  ASSERT_EQ(Run({"validate", specification, "--resolved"}), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("examples_text"), HasSubstr("\"tokens\": 8")));

  File("my_train.jsonl", "{\"input\": \"12+7=\", \"target\": \"19\", \"mask\": [1, 0]}\n");
  EXPECT_EQ(Run({"validate", specification}), 2);
  EXPECT_THAT(err_, HasSubstr("leave the mask out"));
}

TEST_F(ExampleFilesTest, TwentyBadLinesAreNamedInFull) {
  const std::string name = std::string(100, 'n') + ".jsonl";
  const std::string path = Specification(", train: " + name + ", test: my_test.jsonl");
  std::string lines;
  for (int line = 1; line <= 22; ++line) {
    absl::StrAppend(&lines, "{\"input\": [", line, ", 1], \"target\": [\"", std::string(200, 'x'),
                    "\"]}\n");
  }
  File(name, lines);
  EXPECT_EQ(Run({"validate", path}), 2);
  for (int line = 1; line <= 20; ++line) {
    EXPECT_THAT(err_, HasSubstr(absl::StrCat(name, ":", line, ": target: got \"xxx")));
  }
  EXPECT_THAT(err_,
              AllOf(HasSubstr("and 2 more in the task's files"), Not(HasSubstr(name + ":21"))));
}

// The sequences have 4 tokens at length 2, 6 at 3 and 8 at 4.
TEST_F(ExampleFilesTest, ChecksLengthFormulasFromShortestExample) {
  Specification(kFiles);
  const auto validate = [&](const std::string& logits, const std::string& lengths) {
    return Run({"validate",
                File("formula.yaml",
                     absl::StrCat("name: mine\ntasks: {name: examples", kFiles,
                                  "}\nencodings: {name: formula, label: mine, logits: \"", logits,
                                  "\"}\nlearning_rates: 0.001\n"
                                  "training: {steps: 10, lengths: ",
                                  lengths, "}\n"))});
  };
  for (const int n : {4, 6, 8}) {
    EXPECT_EQ(validate(absl::StrCat("1 / (n - ", n, ")"), "2..3"), 2);
    EXPECT_THAT(err_, HasSubstr(absl::StrCat("n = ", n)));
  }
  EXPECT_EQ(validate("1 / (n - 3)", "2..3"), 0) << err_;
  EXPECT_EQ(validate("1 / (n - 4)", "3..3"), 0) << "length 2 is not asked for: " << err_;
}

TEST_F(ExampleFilesTest, LanguageModelsNeedOnlyTrainedTokens) {
  Specification(kFiles);
  const std::string lines =
      "{\"input\": \"aaaaaaaaa\", \"target\": \"b\", \"length\": 1}\n"
      "{\"input\": \"a\", \"target\": \"b\", \"length\": 2}\n"
      "{\"input\": \"aaaaaaa\", \"target\": \"b\", \"length\": 3}\n";
  File("my_train.jsonl", lines);
  File("my_test.jsonl", lines);
  const auto validate = [&](const std::string& training) {
    return Run(
        {"validate", "--resolved",
         File("text.yaml", absl::StrCat("name: mine\ntasks: {name: examples", kFiles,
                                        "}\nnetworks: {name: causal_decoder, blocks: 1, heads: 2, "
                                        "d_model: 16}\nencodings: rope\nlearning_rates: 0.001\n"
                                        "training: {steps: 10, ",
                                        training, "}\n"))});
  };
  EXPECT_EQ(validate("lengths: 2..2, packing: {tokens: 3}"), 0) << err_;
  EXPECT_EQ(validate("lengths: 2..2"), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("\"tokens\": 3"));
  EXPECT_EQ(validate("lengths: 2..3, packing: {tokens: 8}"), 2);
  EXPECT_THAT(err_, HasSubstr("training.packing.tokens: got 8, expected at least 9"));
}

TEST_F(ExampleFilesTest, ResolvedSpecificationsAreSpecifications) {
  ASSERT_EQ(Run({"validate", Specification(kFiles), "--resolved"}), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("train_sha256"), HasSubstr("contents")));
  const std::string path = File("resolved.json", out_);
  EXPECT_EQ(Run({"validate", path}), 0) << err_;
}

TEST_F(ExampleFilesTest, DirectoryIsNotASpecification) {
  const std::string directory = testing::TempDir() + "/quickstart";
  std::filesystem::create_directories(directory);
  EXPECT_EQ(Run({"validate", directory}), 2);
  EXPECT_THAT(err_, HasSubstr("quickstart (it is a directory); name a file in it"));
}

TEST_F(ExampleFilesTest, SampleTakesAReadySpecification) {
  const std::filesystem::path before = std::filesystem::current_path();
  const std::filesystem::path checkout = testing::TempDir() + "/sample_checkout";
  std::filesystem::create_directories(checkout / "experiments/published");
  std::ofstream(checkout / "experiments/published/papers.json") << "{}";
  std::ofstream(checkout / "experiments/ready.yaml") << kSpecification;
  std::filesystem::current_path(checkout);
  EXPECT_EQ(Run({"sample", "ready"}), 2);
  EXPECT_THAT(err_, AllOf(HasSubstr("ready names no file of examples"),
                          HasSubstr("`lengthwise sample bucket_sort`")));
  std::filesystem::current_path(before);
}

TEST_F(ExampleFilesTest, SampleShowsTheNetworksInput) {
  const std::string path =
      Specification(", label: my_task, train: my_train.jsonl, test: my_test.jsonl");
  File("my_train.jsonl", "{\"input\": \"ab\", \"target\": \"b\", \"mask\": [0], \"length\": 7}\n");
  File("my_test.jsonl", "{\"input\": \"ba\", \"target\": \"b\"}\n");
  ASSERT_EQ(Run({"sample", path, "--output", "csv"}), 0) << err_;
  EXPECT_EQ(out_,
            "task,part,length,input,target,reads,answers\n"
            "my_task,train,7,ab,b,0 1 _,(0)\n"
            "my_task,test,2,ba,b,1 0 _,0\n");
  ASSERT_EQ(Run({"sample", path}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("the network reads"));
  EXPECT_EQ(Run({"sample", path, "--length", "50"}), 2);
  EXPECT_THAT(err_, HasSubstr("--length is for a task by its name"));
  EXPECT_EQ(Run({"sample", "examples"}), 2);
  EXPECT_THAT(err_, HasSubstr("lengthwise sample my.yaml"));
  EXPECT_EQ(Run({"sample", File("built_in.yaml", kSpecification)}), 2);
  EXPECT_THAT(err_, HasSubstr("names no file of examples"));
}

}  // namespace
}  // namespace lengthwise::client
