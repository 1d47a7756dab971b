# Completes `lengthwise` in bash. Load it in ~/.bashrc:
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
