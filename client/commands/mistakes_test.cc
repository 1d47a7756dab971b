// Every mistake on the command line gets one line that says what to do next.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/commands/testing/commands_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Mistake {
  std::vector<std::string> typed;
  int code;
  // The message after "lengthwise: ".
  std::string said;
};

class MistakesTest : public CommandsTest {
 protected:
  MistakesTest() {
    setenv("LENGTHWISE_CONFIG", "", 1);
    server_.real().Submit("e", {"none", "sin_cos"});
  }

  void ExpectOneLine(const Mistake& mistake) {
    const std::string typed = absl::StrJoin(mistake.typed, " ");
    EXPECT_EQ(Run(mistake.typed), mistake.code) << typed;
    EXPECT_EQ(out_, "") << typed;
    EXPECT_EQ(err_, absl::StrCat("lengthwise: ", mistake.said, "\n")) << typed;
  }
};

TEST_F(MistakesTest, ExplainsWordsAndOptions) {
  const std::vector<Mistake> mistakes = {
      {{"sumbit", "x.yaml"},
       kUsage,
       "unknown command \"sumbit\"; did you mean \"submit\"?; see `lengthwise --help`"},
      {{"auth", "crate-token"},
       kUsage,
       "unknown command \"crate-token\"; did you mean \"create-token\"?; see `lengthwise auth "
       "--help`"},
      {{"auth"},
       kUsage,
       "a command is missing: expected create-token, list-tokens, revoke-token or whoami; see "
       "`lengthwise auth --help`"},
      {{"workers", "up"},
       kUsage,
       "no cluster given: pass --slurm (Kubernetes needs no command: deploy/kubernetes)"},
      {{"workers", "up", "--slurm", "--max", "0"},
       kUsage,
       "--max: got \"0\", expected a number above 0; see `lengthwise workers up --help`"},
      {{"analyze"},
       kUsage,
       "a command is missing: expected attention, attention_matrix, ground_truth, encodings, "
       "noise, humans, carries, carry_chains, speed, loss_ratios or t_test; see `lengthwise "
       "analyze --help`"},
      {{"analyze", "attention", "e-1"},
       kUsage,
       "--reference is missing: Encoding to compare the other maps with; see `lengthwise analyze "
       "attention --help`"},
      {{"sample", "bucket_sort", "--lenght", "4"},
       kUsage,
       "unknown option \"--lenght\"; did you mean \"--length\"?; see `lengthwise sample --help`"},
      {{"watch"},
       kUsage,
       "EXPERIMENT is missing: Name of the experiment, or of its specification; see `lengthwise "
       "watch --help`"},
      {{"auth", "create-token", "ada", "--out", "x"},
       kUsage,
       "--role is missing: viewer reads, submitter also submits and changes what it owns, worker "
       "trains, backup makes backups, admin may do everything; see `lengthwise auth create-token "
       "--help`"},
      {{"--server"},
       kUsage,
       "the option before the command needs a value; see `lengthwise --help`"},
      {{"list", "extra"}, kUsage, "unexpected argument \"extra\"; see `lengthwise list --help`"},
      {{"results", "e", "--output", "jsn"},
       kUsage,
       "--output: got \"jsn\", expected table, json, csv, markdown or latex; did you mean "
       "\"json\"?; see `lengthwise results --help`"},
      {{"results", "e", "--output"},
       kUsage,
       "--output needs a value: table, json, csv, markdown or latex; see `lengthwise results "
       "--help`"},
      {{"watch", "e", "--until", "never"},
       kUsage,
       "--until: got \"never\", expected done or running; see `lengthwise watch --help`"},
      {{"sample", "bucket_sort", "--length", "x"},
       kUsage,
       "--length: got \"x\", expected a number from 1 to 1000000; see `lengthwise sample --help`"},
      {{"list", "--limit", "many"},
       kUsage,
       "--limit: got \"many\", expected a number, 0 or more; see `lengthwise list --help`"},
      {{"list", "--limit", "-3"},
       kUsage,
       "--limit: got \"-3\", expected a number, 0 or more; see `lengthwise list --help`"},
      {{"run", "e.yaml", "--device", "gpu"},
       kUsage,
       "--device: got \"gpu\", expected auto, cpu or cuda:N; see `lengthwise run --help`"},
      // An unset variable must not stand for the root directory or for a server.
      {{"run", "e.yaml", "--data_dir", ""},
       kUsage,
       "--data_dir: got \"\", expected a directory; see `lengthwise run --help`"},
      {{"delete", "e", "--yes", "--data_dir", ""},
       kUsage,
       "--data_dir: got \"\", expected a directory; see `lengthwise delete --help`"},
      {{"evaluate", "e/0", "--data_dir", "D", "--detach"},
       kUsage,
       "--detach needs a server: with --data_dir nothing would run the evaluation after this "
       "command"},
      {{"submit", "e.yaml", "--watch", "--output", "csv"},
       kUsage,
       "--output: got \"csv\", --watch prints table or json"},
      {{"watch", "e", "--output", "csv"},
       kUsage,
       "--output: got \"csv\", expected table or json; see `lengthwise watch --help`"},
      {{"evaluate", "e/0", "--seed", "-1"},
       kUsage,
       "--seed: got \"-1\", expected a number, 0 or more; see `lengthwise evaluate --help`"},
      {{"sample", "bucket_sort", "--seed", "-1"},
       kUsage,
       "--seed: got \"-1\", expected a number, 0 or more; see `lengthwise sample --help`"},
      {{"evaluate", "e/0", "--lengths", ""},
       kUsage,
       "--lengths: got \"\", expected numbers such as 1,2,5 or 10..19; see `lengthwise evaluate "
       "--help`"},
      {{"attention", "e/0", "--input", ""},
       kUsage,
       "--input: got \"\", expected tokens or numbers such as 0,1,1; see `lengthwise attention "
       "--help`"},
      {{"attention", "e/0", "--layer", "0"},
       kUsage,
       "--layer: got \"0\", expected a number above 0; see `lengthwise attention --help`"},
      {{"attention", "e/0", "--input", "1,2", "--length", "5"},
       kUsage,
       "--length selects recorded maps, and --input makes a new one; leave one out"},
      {{"results", "e", "--whole_table"},
       kUsage,
       "--whole_table belongs to --compare; add it, or leave both"},
      {{"plot", "e", "--figure", "loss", "--width", "0"},
       kUsage,
       "--width: got \"0\", expected a number above 0; see `lengthwise plot --help`"},
      {{"completion", "ksh"},
       kUsage,
       "shell: got \"ksh\", expected bash, zsh or fish; did you mean \"zsh\"?; see `lengthwise "
       "completion --help`"},
  };
  for (const Mistake& mistake : mistakes) ExpectOneLine(mistake);
}

TEST_F(MistakesTest, ExplainsNames) {
  const std::vector<Mistake> mistakes = {
      {{"tasks", "buckt_sort"},
       kUsage,
       "unknown task \"buckt_sort\"; did you mean \"bucket_sort\"?"},
      {{"encodings", "randomized_relative"},
       kUsage,
       "unknown encoding \"randomized_relative\"; write {name: relative, randomized: true}"},
      {{"show", "f-1"}, kFailure, "there is no experiment \"f-1\"; did you mean \"e-1\"?"},
      {{"logs", "e-1/7"},
       kFailure,
       "there is no trial \"7\" in e-1; accepted: bucket_sort-encoder-none-lr0.001-seed0, "
       "bucket_sort-encoder-sin_cos-lr0.001-seed0"},
      {{"logs", "e"}, kUsage, "\"e\" is an experiment; name a trial of it, such as e-1/0"},
      {{"man", "plt"}, kUsage, "there is no command \"lengthwise plt\"; did you mean \"plot\"?"},
  };
  for (const Mistake& mistake : mistakes) ExpectOneLine(mistake);
}

TEST_F(MistakesTest, UnknownHostOfAListIsAWarning) {
  EXPECT_EQ(Run({"list", "--server", absl::StrCat("no-such-host.invalid:1,", server_.address())}),
            0);
  EXPECT_EQ(err_,
            "warning: the server address no-such-host.invalid:1 is left out until the next start, "
            "because its host is unknown; check the name, or give an IP address\n");
}

TEST_F(MistakesTest, ExplainsServersAndTokens) {
  ExpectOneLine({{"list", "--server", "127.0.0.1:1"},
                 kUnreachable,
                 "cannot reach a server at 127.0.0.1:1 (Connection refused); start "
                 "`lengthwise_server`, pass --server HOST:PORT, or train here with `lengthwise run "
                 "SPEC`"});
  ExpectOneLine({{"list", "--server", "gpu-head"},
                 kUsage,
                 "the server \"gpu-head\" (--server) is not HOST:PORT, such as 127.0.0.1:7070, or "
                 "a comma-separated list of them"});
  ExpectOneLine(
      {{"list", "--server", "http://127.0.0.1:7070"},
       kUsage,
       "the server \"http://127.0.0.1:7070\" (--server) is not HOST:PORT, such as "
       "127.0.0.1:7070, or a comma-separated list of them; leave out http:// or https://"});
  const std::string none = testing::TempDir() + "/no.token";
  ExpectOneLine({{"list", "--token_file", none},
                 kFailure,
                 absl::StrCat("cannot read the token file ", none,
                              ": No such file or directory; set token_file to the one that an "
                              "administrator gave you")});
  const std::string open = File("open.token", "lw_0_0");
  std::filesystem::permissions(open, std::filesystem::perms(0644));
  ExpectOneLine(
      {{"list", "--token_file", open},
       kFailure,
       absl::StrCat("other users may read the token file ", open, "; run `chmod 600 ", open, "`")});
  // Tokens are passed by file. A secret on the command line is not repeated.
  EXPECT_EQ(Run({"list", "--token", "lw_secret"}), kUsage);
  EXPECT_THAT(err_, AllOf(HasSubstr("unknown option \"--token\""), Not(HasSubstr("lw_secret"))));
  server_.RefuseAlways(
      "GetCaller", {grpc::StatusCode::UNAUTHENTICATED,
                    "the token 3f of ada expired at 2026-01-01; ask an administrator for another"});
  ExpectOneLine({{"auth", "whoami"},
                 kFailure,
                 "the token 3f of ada expired at 2026-01-01; ask an administrator for another"});
  // A server that answers UNAVAILABLE (14) was reached, because its status has details.
  server_.RefuseAlways("GetCaller",
                       {grpc::StatusCode::UNAVAILABLE,
                        "nothing was stored: the disk is full; try again", "\x08\x0e"});
  ExpectOneLine({{"auth", "whoami"}, kFailure, "nothing was stored: the disk is full; try again"});
}

TEST_F(MistakesTest, DeletionGuessesNoName) {
  ExpectOneLine({{"delete", "e", "--yes"},
                 kFailure,
                 "there is no experiment \"e\"; `delete` needs a full name, and this one matches "
                 "e-1"});
  server_.real().Submit("e", {"none"});
  ExpectOneLine({{"delete", "e", "--yes"},
                 kFailure,
                 "there is no experiment \"e\"; `delete` needs a full name, and this one matches "
                 "e-2, e-1"});
  ExpectOneLine({{"delete", "none-1", "--yes"},
                 kFailure,
                 "there is no experiment \"none-1\"; `delete` needs a full name, as `lengthwise "
                 "list` shows"});
  ExpectOneLine({{"delete", "e-1/0", "--yes"},
                 kUsage,
                 "\"e-1/0\" names a trial; single trials cannot be deleted, only whole "
                 "experiments"});
}

TEST_F(MistakesTest, ExplainsFiles) {
  const std::string spec = File("mistakes.yaml", kSpecification);
  const std::string near = absl::StrReplaceAll(spec, {{"mistakes", "mistaks"}});
  ExpectOneLine({{"validate", near},
                 kUsage,
                 absl::StrCat("cannot read ", near,
                              ": No such file or directory; did you mean \"mistakes.yaml\"?")});
  ExpectOneLine({{"validate", spec + "/in_a_file.yaml"},
                 kUsage,
                 absl::StrCat("cannot read ", spec,
                              "/in_a_file.yaml: Not a directory; name a file, or - for standard "
                              "input")});
  ExpectOneLine({{"submit", "spec.txt"},
                 kUsage,
                 "cannot tell the format of \"spec.txt\" from its name: expected .yaml, .yml, "
                 ".json, .textproto or .txtpb"});
  const std::string directory = testing::TempDir() + "/nowhere";
  ExpectOneLine({{"results", "e", "--data_dir", directory},
                 kFailure,
                 absl::StrCat("there is no directory ", directory,
                              "; name the --data_dir of a `lengthwise run`, or leave it out to ask "
                              "a server")});
  EXPECT_FALSE(std::filesystem::exists(directory));
  std::filesystem::create_directory(directory);
  ExpectOneLine({{"results", "e", "--data_dir", directory},
                 kFailure,
                 absl::StrCat(directory,
                              " holds no experiments (no lengthwise.db); name the --data_dir of a "
                              "`lengthwise run`")});
  EXPECT_TRUE(std::filesystem::is_empty(directory));
}

TEST_F(MistakesTest, FilesThatNeverEndAreRefused) {
  const std::string folder = testing::TempDir() + "/endless";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string pipe = folder + "/pipe.yaml", loop = folder + "/loop.yaml",
                    zero = folder + "/zero.yaml", large = folder + "/large.yaml";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink(loop, loop);
  std::filesystem::create_symlink("/dev/zero", zero);
  std::ofstream(large) << kSpecification;
  std::filesystem::resize_file(large, uintmax_t{1} << 40);
  for (const auto& [path, reason] :
       {std::pair<std::string, const char*>{pipe, "it is a pipe, expected a regular file"},
        {zero, "it is a device, expected a regular file"},
        {loop, "Too many levels of symbolic links"},
        {large, "it has 1099511627776 bytes, expected at most 1048576"}}) {
    const std::string why = absl::StrCat("cannot read ", path, ": ", reason);
    ExpectOneLine({{"validate", path},
                   kUsage,
                   absl::StrCat(why, "; name another file, or - for standard input")});
    ExpectOneLine({{"list", "--tls_ca", path}, kFailure, why});
    // None of them is suggested for another.
    ExpectOneLine({{"validate", folder + "/lop.yaml"},
                   kUsage,
                   absl::StrCat("cannot read ", folder,
                                "/lop.yaml: No such file or directory; name a file, or - for "
                                "standard input")});
  }
  for (const std::string& path : {pipe, loop, zero}) {
    const std::string spec =
        File("endless.yaml",
             absl::StrReplaceAll(
                 kSpecification,
                 {{"bucket_sort", absl::StrCat("{name: examples, train: ", path, "}")}}));
    EXPECT_EQ(Run({"validate", spec}), kUsage);
    EXPECT_THAT(err_, AllOf(HasSubstr(absl::StrCat("tasks[0].train: cannot read ", path)),
                            Not(HasSubstr("did you mean"))));
  }
}

TEST_F(MistakesTest, ExplainsUnreadableFiles) {
  const std::string theirs = File("theirs.yaml", kSpecification);
  std::filesystem::permissions(theirs, std::filesystem::perms(0));
  // Root may read everything.
  const bool root = geteuid() == 0;
  if (root) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  ExpectOneLine({{"validate", theirs},
                 kUsage,
                 absl::StrCat("cannot read ", theirs,
                              ": Permission denied; its owner lets you read it with `chmod a+r ",
                              theirs, "`")});
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
}

// Output to a full disk is a failure.
TEST_F(MistakesTest, FullDiskFailsTheCommand) {
  const std::vector<std::vector<std::string>> typed = {{"results", "e"},
                                                       {"results", "e", "--output", "csv"},
                                                       {"list", "--output", "json"},
                                                       {"tasks"},
                                                       {"--version"},
                                                       {"results", "--help"}};
  for (const std::vector<std::string>& arguments : typed) {
    std::ofstream out("/dev/full");
    std::ostringstream err;
    Program program(out, err);
    program.server = server_.address();
    EXPECT_EQ(Main(arguments, program), kFailure) << absl::StrJoin(arguments, " ");
    EXPECT_EQ(err.str(),
              "lengthwise: cannot write all of the output: No space left on device; free some "
              "space\n")
        << absl::StrJoin(arguments, " ");
  }
}

TEST_F(MistakesTest, ExplainsAMissingPython) {
  setenv("LENGTHWISE_PYTHON", "/nowhere/python", 1);
  ExpectOneLine(
      {{"plot", "e", "--figure", "loss", "--server", "127.0.0.1:1"},
       kFailure,
       "cannot execute /nowhere/python: No such file or directory; set LENGTHWISE_PYTHON to "
       "a Python with the package lengthwise, or run deploy/install.sh"});
}

}  // namespace
}  // namespace lengthwise::client
