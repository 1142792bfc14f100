"""`perfdiff cache`: show, clear or verify the cache."""

from __future__ import annotations

from typing import Annotated

import typer

from perfdiff import units
from perfdiff.cli import exits, options, output, waiting

app = options.application(
    invoke_without_command=True,
    help="Show what is kept between comparisons, so that repeated ones build and run nothing again.",
)

_SECONDS_PER_DAY = 86400.0
_DAYS = 30.0


@app.callback()
def show(context: typer.Context, cache: options.Cache = None) -> None:
    """Show the parts of the cache with their sizes."""
    if context.invoked_subcommand is not None:
        context.obj = cache
        return
    from perfdiff import storage

    with exits.exceptions_become_codes():
        folder = options.cache_folder(cache)
        parts = storage.contents(folder)
        rows = [f"{units.size(part.size_bytes):>10}  {part.says}" for part in parts]
        output.write("\n".join([*rows, f"{units.size(sum(part.size_bytes for part in parts)):>10}  in {folder}"]))


@app.command()
def prune(
    context: typer.Context,
    days: Annotated[float, typer.Option("--days", min=0, help="Remove what was not used for this many days.")] = _DAYS,
    cache: options.Cache = None,
) -> None:
    """Remove builds and recordings that were not used for a long time; --days 0 removes everything that is not in use."""
    from perfdiff import storage

    with exits.exceptions_become_codes():
        folder = options.cache_folder(cache or context.obj)
        freed = storage.prune(folder, max_age_s=days * _SECONDS_PER_DAY)
        output.write(f"freed {units.size(freed)} in {folder}")


@app.command()
def verify(
    context: typer.Context,
    remove: Annotated[bool, typer.Option("--remove", help="Remove what is damaged; it is made again when needed.")] = False,
    cache: options.Cache = None,
) -> None:
    """Read all recordings and the records of builds, and say what is damaged, and what is not perfdiff's.

    Exits with 3 if damage was found and not removed.
    """
    from perfdiff import storage
    from perfdiff.report.printable import printable

    with exits.exceptions_become_codes(), waiting.progress(quiet=False, verbose=False) as progress:
        folder = options.cache_folder(cache or context.obj)
        verified = storage.verify(folder, progress)
        damaged = verified.damaged
        if damaged and remove:
            storage.clear(folder, damaged)
        left = [damage for damage in damaged if damage.path.exists()]
        said = [f"{damage.says}{'' if damage in left else ' (removed)'}" for damage in damaged]
        said += [f"{path} is not perfdiff's, or cannot be read; it is left alone" for path in storage.strangers(folder)]
        said += [f"builds in use, and not looked at: {verified.builds_in_use}"] if verified.builds_in_use else []
        said.append(f"{len(damaged)} damaged in {folder}" if damaged else f"nothing is damaged in {folder}")
        output.write("\n".join(map(printable, said)))
        if left:
            raise typer.Exit(exits.ExitCode.NOT_MEASURED)
