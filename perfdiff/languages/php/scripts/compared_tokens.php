<?php
// Says which PHP files are the same as the engine reads them: by its own tokens, without white space and ordinary comments. Nothing of
// them is run.
//
// Standard input is a JSON list of names, each with two paths. Prints a JSON list of the names of those that are the same.

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

/** What tokens say. */
function meaning(array $tokens): array
{
    $said = [];
    foreach ($tokens as $index => $token) {
        $line = shows_line($token, $tokens[$index - 1] ?? null, $tokens[$index + 1] ?? null) ? $token->line : null;
        $place = $token->id === T_HALT_COMPILER ? $token->pos : null; // a constant of that file
        $said[] = [$token->id, $token->id === T_OPEN_TAG ? rtrim($token->text) : $token->text, $line, $place];
    }
    return $said;
}

/** Whether two files are the same. */
function are_alike(string $base, string $head): bool
{
    [$first, $second] = [tokens($base), tokens($head)];
    return $first !== null && $second !== null && meaning($first) === meaning($second);
}

$alike = [];
if (class_exists('PhpToken')) {
    foreach (json_decode(stream_get_contents(STDIN), true) as [$name, $base, $head]) {
        if (are_alike($base, $head)) {
            $alike[] = $name;
        }
    }
}
echo json_encode($alike);
