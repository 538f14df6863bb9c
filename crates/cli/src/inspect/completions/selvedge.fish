# Completions of `selvedge` for fish.
function __selvedge_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l current (commandline --current-token --cut-at-cursor)
    set -l program $words[1]
    set -e words[1]
    set -l found ($program __complete -- $words "$current" 2>/dev/null)
    if test "$found" = \t
        # Nothing fits here, files neither.
        return
    else if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path "$current"
    end
end
complete --command selvedge --no-files --keep-order --arguments '(__selvedge_complete)'
