# Completions of `selvedge` for bash 4.4 or newer.
_selvedge() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        line=${line%%$'\t'*}
        if [[ -z $line ]]; then
            # Nothing fits here, files neither.
            compopt +o default +o bashdefault 2>/dev/null || :
            continue
        fi
        # Bash took a word with `=` apart, and completes what is behind it.
        [[ $2 != *=* && $line == --*=* ]] && line=${line#*=}
        COMPREPLY+=("$(printf '%q' "$line")")
    done < <("$1" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" "$2" 2>/dev/null)
}
complete -o default -o bashdefault -o nosort -F _selvedge selvedge
