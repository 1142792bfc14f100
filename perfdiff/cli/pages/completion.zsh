#compdef perfdiff

_perfdiff_completion() {
    local line value
    local -a described
    while IFS= read -r line; do
        value="${${line%%$'\t'*}//:/\\:}"
        [[ "$line" == *$'\t'* ]] && value+=":${line#*$'\t'}"
        described+=("$value")
    done < <(_PERFDIFF_COMPLETE=complete_zsh _TYPER_COMPLETE_ARGS="${(j: :)words[1,CURRENT-1]} $PREFIX" "${words[1]}" 2>/dev/null)
    if (( $#described )); then
        _describe 'perfdiff' described
    else
        _files
    fi
}

compdef _perfdiff_completion perfdiff
