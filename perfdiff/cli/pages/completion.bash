_perfdiff_completion() {
    local IFS=' ' line value breaks="$COMP_WORDBREAKS" current="${COMP_WORDS[COMP_CWORD]}"
    if [[ -n "$COMP_LINE" ]]; then
        line="${COMP_LINE:0:COMP_POINT}"
    else
        line="${COMP_WORDS[*]:0:COMP_CWORD+1}"
    fi
    # A word that begins with a quotation mark is one for bash, whatever is in it.
    [[ "$current" != [\"\']* ]] || breaks=""
    COMPREPLY=()
    while IFS= read -r value; do
        case "$current" in
            \"*)
                value="${value//\\/\\\\}" value="${value//\"/\\\"}" value="${value//\$/\\\$}" value="${value//\`/\\\`}"
                ;;
            \'*) value="${value//\'/\'\\\'\'}" ;;
            *) printf -v value %q "$value" ;;
        esac
        COMPREPLY+=("$value")
    done < <(_PERFDIFF_COMPLETE=complete_bash COMP_WORDS="$line" COMP_WORDBREAKS="$breaks" "$1" 2>/dev/null)
}

complete -o bashdefault -o default -F _perfdiff_completion perfdiff
