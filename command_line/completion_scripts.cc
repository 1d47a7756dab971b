#include "command_line/completion.h"

namespace lengthwise::command_line {

const char kBashCompletion[] = R"sh(# Completes `lengthwise` in bash. Load it in ~/.bashrc:
#   source <(lengthwise completion bash)
_lengthwise() {
  local line=${COMP_LINE:0:COMP_POINT} current='' word mode='' cut
  local -a words=()
  read -ra words <<<"$line"
  # bash breaks words at "=" and ":" and lets us replace the last piece alone.
  if [[ $line == *[[:space:]] ]]; then words+=(''); else current=${words[${#words[@]} - 1]}; fi
  cut=${current%"${current##*[=:]}"}
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ -z $mode ]]; then
      mode=$line
      continue
    fi
    word=${line%%$'\t'*}
    COMPREPLY+=("${word#"$cut"}")
  done < <("${words[0]}" __complete -- "${words[@]:1}" 2>/dev/null)
  case $mode in
    :words/) compopt -o nospace ;;
    :files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "${current#"$cut"}") ;;
    :directories) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "${current#"$cut"}") ;;
  esac
}
complete -F _lengthwise lengthwise
)sh";

const char kZshCompletion[] = R"sh(#compdef lengthwise
# Completes `lengthwise` in zsh. Load it in ~/.zshrc, after compinit:
#   source <(lengthwise completion zsh)
# or write it to a file _lengthwise in a directory of $fpath.
_lengthwise() {
  local -a lines described
  local line word help
  lines=("${(@f)$(${(Q)words[1]} __complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  case $lines[1] in
    :files) _files; return ;;
    :directories) _files -/; return ;;
    :words*) ;;
    *) return 1 ;;
  esac
  for line in "${(@)lines[2,-1]}"; do
    word=${line%%$'\t'*}
    help=${line#*$'\t'}
    [[ $help == "$line" ]] && help=
    described+=("${word//:/\\:}${help:+:$help}")
  done
  if [[ $lines[1] == :words/ ]]; then
    _describe -V lengthwise described -S ''
  else
    _describe -V lengthwise described
  fi
}
# From $fpath zsh loads this file as the body of _lengthwise, at the first Tab, which wants its answer.
if [[ $funcstack[1] == _lengthwise ]]; then
  _lengthwise "$@"
else
  compdef _lengthwise lengthwise
fi
)sh";

const char kFishCompletion[] =
    R"sh(# Completes `lengthwise` in fish. Load it in ~/.config/fish/config.fish:
#   lengthwise completion fish | source
function __lengthwise_complete
    set -l words (commandline --cut-at-cursor --tokenize --current-process)
    set -l current (commandline --cut-at-cursor --current-token)
    set -l lines ($words[1] __complete -- $words[2..-1] "$current" 2>/dev/null)
    switch "$lines[1]"
        case ':files'
            __fish_complete_path "$current"
        case ':directories'
            __fish_complete_directories "$current"
        case ':words*'
            printf '%s\n' $lines[2..-1]
    end
end
complete --command lengthwise --no-files --arguments '(__lengthwise_complete)'
)sh";

}  // namespace lengthwise::command_line
