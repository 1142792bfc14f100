<?php
// Loads the project's own classes and files as its composer.json says, where Composer has laid nothing: packages of others are not there.

declare(strict_types=1);

namespace Perfdiff;

(static function (string $project): void {
    $composer = json_decode(@file_get_contents("$project/composer.json") ?: '[]', true) ?: [];
    $folders = ['psr-4' => [], 'psr-0' => []];
    $files = [];
    foreach (['autoload', 'autoload-dev'] as $part) {
        foreach (array_keys($folders) as $standard) {
            foreach ($composer[$part][$standard] ?? [] as $prefix => $paths) {
                $folders[$standard][$prefix] = [...$folders[$standard][$prefix] ?? [], ...(array) $paths];
            }
        }
        array_push($files, ...$composer[$part]['files'] ?? []);
    }
    spl_autoload_register(static function (string $class) use ($project, $folders): void {
        foreach ($folders as $standard => $prefixes) {
            foreach ($prefixes as $prefix => $paths) {
                if ($prefix !== '' && !str_starts_with($class, $prefix)) {
                    continue;
                }
                // PSR-0 has the whole name below the folder, and underscores of the class as folders, too.
                $end = (int) strrpos('\\' . $class, '\\');
                $file = $standard === 'psr-4'
                    ? strtr(substr($class, strlen($prefix)), '\\', '/')
                    : strtr(substr($class, 0, $end), '\\', '/') . strtr(substr($class, $end), '_', '/');
                foreach ($paths as $path) {
                    if (is_file($found = "$project/$path/$file.php")) {
                        require_once $found;
                        return;
                    }
                }
            }
        }
    });
    foreach ($files as $file) {
        require_once "$project/$file";
    }
})(getcwd());
