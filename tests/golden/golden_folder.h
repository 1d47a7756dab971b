// Locates the golden files. Does not depend on LibTorch.
#ifndef LENGTHWISE_TESTS_GOLDEN_GOLDEN_FOLDER_H_
#define LENGTHWISE_TESTS_GOLDEN_GOLDEN_FOLDER_H_

#include <string>
#include <vector>

namespace lengthwise::golden {

// The folder `name` of golden files, in $LENGTHWISE_GOLDEN_DIR if it is set, otherwise in the
// tree's tests/golden.
std::string Folder(const std::string& name);

// Sorted names, without extension, of the .json files in Folder(folder) and the `required` ones. A
// required file may be absent; its test is then skipped with a message.
std::vector<std::string> Files(const std::string& folder, std::vector<std::string> required);

// A file's name as part of a test's name: letters, digits and '_'.
std::string TestName(std::string file_name);

// An error if Folder(name) and its subfolders have no .json file, otherwise empty. Makes a mistyped
// $LENGTHWISE_GOLDEN_DIR fail instead of skipping everything.
std::string WhyNothingIsIn(const std::string& name);

// The folder of third-party data, which is not in this repository: $LENGTHWISE_DATA_DIR, or
// ../shared/data beside the checkout. Empty if it does not exist; tests that read it are then
// skipped with a message.
std::string DataFolder();

}  // namespace lengthwise::golden

#endif  // LENGTHWISE_TESTS_GOLDEN_GOLDEN_FOLDER_H_
