#compdef lengthwise
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
