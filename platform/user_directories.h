// Default directories of a user's files, by the XDG base directory specification.
#ifndef LENGTHWISE_PLATFORM_USER_DIRECTORIES_H_
#define LENGTHWISE_PLATFORM_USER_DIRECTORIES_H_

#include <cstdlib>
#include <optional>
#include <string>

namespace lengthwise::platform {

// Returns $XDG_CACHE_HOME/lengthwise, or ~/.cache/lengthwise if the variable is unset or not an
// absolute path. nullopt if $HOME is unset or empty, too.
std::optional<std::string> CacheDirectory();
// Likewise, of $XDG_DATA_HOME and ~/.local/share.
std::optional<std::string> DataDirectory();
// Likewise, of $XDG_STATE_HOME and ~/.local/state.
std::optional<std::string> StateDirectory();

// Returns the path with a leading "~/" replaced by `home`/, unless that is null or empty. For paths
// that no shell expands.
std::string ExpandHome(const std::string& path, const char* home = std::getenv("HOME"));

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_USER_DIRECTORIES_H_
