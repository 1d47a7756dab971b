#include "models/layers/kernel_selection.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace lengthwise::models {
namespace {

using Results = std::vector<std::vector<double>>;

constexpr int kRounds = 5;
constexpr int kPassesPerRound = 2;

// LibTorch's exceptions append a stack trace to the first line.
std::string FirstLine(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

// The largest difference as a share of the largest magnitude in `expected`; infinity if one of the
// two has a number that is not finite where the other has not the same.
double Difference(const std::vector<double>& actual, const std::vector<double>& expected) {
  double largest = 0, difference = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const bool both_nan = std::isnan(actual[i]) && std::isnan(expected[i]);
    if (both_nan || actual[i] == expected[i]) {
      if (std::isfinite(expected[i])) largest = std::max(largest, std::abs(expected[i]));
      continue;
    }
    if (!std::isfinite(actual[i]) || !std::isfinite(expected[i])) {
      return std::numeric_limits<double>::infinity();
    }
    largest = std::max(largest, std::abs(expected[i]));
    difference = std::max(difference, std::abs(actual[i] - expected[i]));
  }
  if (difference == 0) return 0;
  return largest == 0 ? std::numeric_limits<double>::infinity() : difference / largest;
}

// Empty if they agree.
std::string Disagreement(const Results& fused, const Results& plain, double tolerance) {
  if (fused.size() != plain.size()) {
    return absl::StrCat(fused.size(), " results, LibTorch's operators ", plain.size());
  }
  for (size_t i = 0; i < plain.size(); ++i) {
    const std::string what = absl::StrCat("result ", i + 1, " of ", plain.size());
    if (fused[i].size() != plain[i].size()) {
      return absl::StrCat(what, ": ", fused[i].size(), " numbers, LibTorch's operators ",
                          plain[i].size());
    }
    const double difference = Difference(fused[i], plain[i]);
    if (difference <= tolerance) continue;
    return absl::StrFormat(
        "%s differs from LibTorch's operators by %.2g of the largest number; at most %.2g is "
        "accepted",
        what, difference, tolerance);
  }
  return "";
}

// Fastest round, in seconds per pass. The candidates take turns, so that other work on the device
// slows both.
struct Times {
  double fused = std::numeric_limits<double>::infinity();
  double plain = std::numeric_limits<double>::infinity();
};

double TimeOneRound(const KernelCandidate& candidate, const KernelComparison& comparison,
                    const std::function<double()>& seconds) {
  comparison.wait();
  const double start = seconds();
  for (int pass = 0; pass < kPassesPerRound; ++pass) candidate.run();
  comparison.wait();
  return (seconds() - start) / kPassesPerRound;
}

Times Time(const KernelComparison& comparison, const std::function<double()>& seconds) {
  Times times;
  for (int round = 0; round < kRounds; ++round) {
    times.fused = std::min(times.fused, TimeOneRound(comparison.fused, comparison, seconds));
    times.plain = std::min(times.plain, TimeOneRound(comparison.plain, comparison, seconds));
  }
  return times;
}

std::string Milliseconds(double seconds) { return absl::StrFormat("%.3g ms", 1e3 * seconds); }

}  // namespace

KernelDecision DecideKernel(const KernelComparison& comparison,
                            const std::function<double()>& seconds) {
  KernelDecision decision = {.operation = comparison.operation};
  const auto decide = [&](bool fused, std::string reason, std::string summary) {
    decision.fused = fused;
    decision.reason = std::move(reason);
    decision.summary = std::move(summary);
    return decision;
  };
  // Call it while the error is handled.
  const auto notice = [&](const std::exception& error) {
    if (comparison.is_device_lost != nullptr && comparison.is_device_lost(error)) throw;
    decision.out_of_memory =
        comparison.is_out_of_memory != nullptr && comparison.is_out_of_memory(error);
  };
  const auto decide_without_operators = [&](absl::string_view checked,
                                            const std::exception& error) {
    notice(error);
    return decide(true, absl::StrCat(checked, ": LibTorch's operators failed: ", FirstLine(error)),
                  "fused: LibTorch's operators fail");
  };
  Results plain;
  try {
    plain = comparison.plain.results();
  } catch (const std::exception& error) {
    return decide_without_operators("not checked", error);
  }
  try {
    const std::string disagreement =
        Disagreement(comparison.fused.results(), plain, comparison.tolerance);
    if (!disagreement.empty()) return decide(false, disagreement, "plain: disagrees");
    // What is timed may need more memory than what is compared.
    try {
      comparison.plain.run();
      comparison.wait();
    } catch (const std::exception& error) {
      return decide_without_operators("agrees, not timed", error);
    }
    const Times times = Time(comparison, seconds);
    const double ratio = times.plain / times.fused;
    const bool fused = !(ratio < kClearlyFaster);
    return decide(fused,
                  absl::StrCat("the kernel takes ", Milliseconds(times.fused),
                               ", LibTorch's operators ", Milliseconds(times.plain)),
                  absl::StrFormat("%s %.2fx", fused ? "fused" : "plain: slower", ratio));
  } catch (const std::exception& error) {
    notice(error);
    return decide(false, absl::StrCat("the kernel failed: ", FirstLine(error)), "plain: fails");
  }
}

KernelChoice ChoiceOf(const std::vector<KernelDecision>& decisions) {
  KernelChoice choice;
  for (const KernelDecision& decision : decisions) {
    choice.Set(decision.operation, decision.fused);
  }
  return choice;
}

std::string SummaryOf(const std::vector<KernelDecision>& decisions) {
  return absl::StrJoin(decisions, ", ", [](std::string* out, const KernelDecision& decision) {
    absl::StrAppend(out, NameOf(decision.operation), " ", decision.summary);
  });
}

}  // namespace lengthwise::models
