// Where the golden files are. No LibTorch.
#ifndef LENGTHWISE_TESTS_GOLDEN_GOLDEN_FOLDER_H_
#define LENGTHWISE_TESTS_GOLDEN_GOLDEN_FOLDER_H_

#include <string>
#include <vector>

namespace lengthwise::golden {

// The folder `name` of the golden files: below $LENGTHWISE_GOLDEN_DIR, or below the tree's
// tests/golden without it.
std::string Folder(const std::string& name);

// Names without extension of the .json files in Folder(folder) and the `required` ones, sorted. A
// required file may be absent: its test is then skipped and says so.
std::vector<std::string> Files(const std::string& folder, std::vector<std::string> required);

// A file's name as part of a test's: letters, digits and '_'.
std::string TestName(std::string file_name);

// What is wrong where Folder(name) and the folders in it have no .json file at all, so that a
// mistyped $LENGTHWISE_GOLDEN_DIR fails instead of skipping everything; empty otherwise.
std::string WhyNothingIsIn(const std::string& name);

// The folder of other people's data, which is no part of this repository: $LENGTHWISE_DATA_DIR, or
// ../shared/data beside the checkout; empty where it is not there. A test that reads it is then
// skipped and says so.
std::string DataFolder();

}  // namespace lengthwise::golden

#endif  // LENGTHWISE_TESTS_GOLDEN_GOLDEN_FOLDER_H_
