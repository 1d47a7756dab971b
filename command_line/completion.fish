# Completes `lengthwise` in fish. Load it in ~/.config/fish/config.fish:
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
