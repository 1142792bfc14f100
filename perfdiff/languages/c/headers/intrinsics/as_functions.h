/*
 * gcc's intrinsics for libclang, as what they are where gcc optimises: functions, whose bodies need not be understood. Else many are macros
 * over builtins that clang lacks, in the midst of a program's own code. Nothing is compiled with this file.
 */
#pragma push_macro("__OPTIMIZE__")
#undef __OPTIMIZE__
#define __OPTIMIZE__ 1
/* clang has a builtin of this name, which a call in C++ could mean as well. */
#define _mm_prefetch __gcc_mm_prefetch
#include_next PERFDIFF_INTRINSICS
#pragma pop_macro("__OPTIMIZE__")
