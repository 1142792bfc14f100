<?php
// Says in what PHP files differ as the engine reads them: by its own tokens, without white space and ordinary comments. Nothing of them is run.
//
// Standard input is a JSON list of names, each with two paths and, for both, the stretches of functions' bodies (first and last byte).
// Prints a JSON object by name: "alike", "bodies" where only such stretches differ, null where anything else does or nothing can be told.

const TAG = '<?';
const NAMES_LINES = 80400; // from this version on closures are called by the line that they are on

/** Whether a token stands between others, and means nothing. */
function means_nothing(PhpToken $token): bool
{
    if ($token->id === T_COMMENT) { // the engine does not accept one without an end
        return !str_starts_with($token->text, '/*') || (strlen($token->text) >= 4 && str_ends_with($token->text, '*/'));
    }
    return $token->id === T_WHITESPACE;
}

/** Whether programs see the line of a token: as a number, or in the name of a class or function that has none of its own. */
function shows_line(PhpToken $token, ?PhpToken $before, ?PhpToken $after): bool
{
    if ($token->id === T_CLASS) {
        return $before?->id !== T_DOUBLE_COLON && $after?->id !== T_STRING;
    }
    $is_closure = $token->id === T_FN || ($token->id === T_FUNCTION && $after?->id !== T_STRING);
    return $token->id === T_LINE || ($is_closure && PHP_VERSION_ID >= NAMES_LINES);
}

/** The tokens of a file that mean something; null where nothing can be told, as it depends on the settings whether `<?` begins code. */
function tokens(string $path): ?array
{
    $content = @file_get_contents($path);
    if ($content === false) {
        return null;
    }
    $found = [];
    foreach (@PhpToken::tokenize($content) as $token) {
        if ($token->id === T_INLINE_HTML && str_contains($token->text, TAG)) {
            return null;
        }
        if (!means_nothing($token)) {
            $found[] = $token;
        }
    }
    return $found;
}

/** What tokens say; of a body among the given ones, that there is one. */
function meaning(array $tokens, array $bodies): array
{
    $said = [];
    $end = 0; // of the body that a token lies in
    foreach ($tokens as $index => $token) {
        foreach ($token->pos < $end ? [] : $bodies as [$first, $last]) {
            if ($token->pos >= $first && $token->pos < $last && $last > $end) {
                $end = $last;
                $said[] = ['body'];
            }
        }
        if ($token->pos >= $end) {
            $line = shows_line($token, $tokens[$index - 1] ?? null, $tokens[$index + 1] ?? null) ? $token->line : null;
            $place = $token->id === T_HALT_COMPILER ? $token->pos : null; // a constant of that file
            $said[] = [$token->id, $token->id === T_OPEN_TAG ? rtrim($token->text) : $token->text, $line, $place];
        }
    }
    return $said;
}

/** How two files compare. */
function compared(string $base, string $head, array $before, array $after): ?string
{
    [$first, $second] = [tokens($base), tokens($head)];
    if ($first === null || $second === null) {
        return null;
    }
    if (meaning($first, []) === meaning($second, [])) {
        return 'alike';
    }
    return $before && meaning($first, $before) === meaning($second, $after) ? 'bodies' : null;
}

$found = [];
if (class_exists('PhpToken')) {
    foreach (json_decode(stream_get_contents(STDIN), true) as [$name, $base, $head, $before, $after]) {
        $found[$name] = compared($base, $head, $before, $after);
    }
}
echo json_encode((object) $found);
