// Questions in a real terminal, and where there is none.
#include "client/commands/confirmation.h"

#include <cstdio>
#include <string>

#include "client/commands/commands_fixture.h"
#include "client/terminal/pseudo_terminal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kDeadline = absl::Seconds(60);

class ConfirmationTest : public CommandsTest {
 protected:
  ConfirmationTest() {
    // Whoever runs the test may have a terminal.
    EXPECT_NE(std::freopen("/dev/null", "r", stdin), nullptr);
    server_.AddExperiment("e-1", {"none", "sin_cos"});
    v1::DiskUse use;
    use.set_artifact_bytes(3 << 20);
    use.set_event_bytes(1 << 20);
    server_.SetDiskUse("experiments/e-1", use);
    for (const char* encoding : {"none", "sin_cos"}) {
      server_.SetState(std::string("experiments/e-1/trials/bucket_sort-") + encoding,
                       v1::CANCELLED);
    }
  }

  // Deletes e-1 in a terminal, types the answer, and waits for `outcome`.
  void DeleteAndAnswer(const std::string& answer, const std::string& outcome) {
    PseudoTerminal terminal({"client/lengthwise", "delete", "e-1", "--server", server_.address()},
                            {{"LENGTHWISE_CONFIG", ""}, {"NO_COLOR", "1"}},
                            {.width = 120, .height = 20});
    const auto question = terminal.ReadUntil("Go on? [y/N] ", kDeadline);
    ASSERT_TRUE(question.has_value()) << terminal.unread();
    EXPECT_THAT(*question,
                HasSubstr("This deletes e-1: 2 trials with their models and histories, 4.0 MiB"));
    EXPECT_THAT(server_.deleted(), IsEmpty());
    terminal.Type(answer);
    EXPECT_TRUE(terminal.ReadUntil(outcome, kDeadline).has_value()) << terminal.unread();
  }
};

TEST_F(ConfirmationTest, YesDeletes) {
  DeleteAndAnswer("y\n", "Deleted e-1.");
  EXPECT_THAT(server_.deleted(), testing::ElementsAre("experiments/e-1"));
}

TEST_F(ConfirmationTest, NothingElseDeletes) {
  for (const char* answer : {"n\n", "\n", "yesterday\n", "\x04", "\x03"}) {
    DeleteAndAnswer(answer, "lengthwise: nothing was done");
  }
  EXPECT_THAT(server_.deleted(), IsEmpty());
}

TEST_F(ConfirmationTest, WithoutATerminalTheCommandIsNamed) {
  EXPECT_EQ(Run({"delete", "e-1"}), kFailure);
  EXPECT_EQ(
      err_,
      "lengthwise: this deletes e-1: 2 trials with their models and histories, 4.0 MiB; there "
      "is no terminal to ask at: `lengthwise delete e-1 --yes` does it\n");
  EXPECT_THAT(server_.deleted(), IsEmpty());
  EXPECT_EQ(Run({"delete", "e"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("there is no experiment \"e\"; did you mean \"e-1\"?"));
}

}  // namespace
}  // namespace lengthwise::client
