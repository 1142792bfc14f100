"""Options of C and C++ compilers: which have their value in the next argument, and which say what is written where."""

# Also part of the masquerade, which starts once per compiler call: it imports nothing.

from __future__ import annotations

DEPENDENCIES = frozenset(("-MF", "-MT", "-MQ", "-MJ"))  # files beside the object, and what they say of it
OUTPUTS = DEPENDENCIES | {"-o", "--output"}
# fmt: off
_WITH_VALUE = OUTPUTS | {
    "-x", "-I", "-D", "-U", "-L", "-l", "-F", "-B", "-T", "-u", "-z", "-e", "-A", "-G", "-include", "-imacros", "-isystem", "-idirafter",
    "-iquote", "-iprefix", "-iwithprefix", "-iwithprefixbefore", "-isysroot", "-iframework", "-framework", "-imultilib", "-mllvm",
    "-aux-info", "--param", "-target", "--sysroot", "-arch", "-dumpbase", "-dumpbase-ext", "-dumpdir", "-wrapper", "-V", "-b",
    "-include-pch", "-gcc-toolchain", "-undefined", "-install_name", "-soname", "-h", "-rpath",
}
# fmt: on


def takes_value(option: str) -> bool:
    """Return whether an option's value is the next argument; `-X…` pass it on to a part of the compiler."""
    return option in _WITH_VALUE or option.startswith("-X")
