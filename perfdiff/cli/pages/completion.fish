function __perfdiff_completion
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l offered (_PERFDIFF_COMPLETE=complete_fish _TYPER_COMPLETE_ARGS=(commandline --current-process --cut-at-cursor | string collect) \
        $words[1] 2>/dev/null)
    if set -q offered[1]
        printf '%s\n' $offered
    else
        __fish_complete_path (commandline --current-token --cut-at-cursor)
    end
end

complete --command perfdiff --no-files --arguments '(__perfdiff_completion)'
