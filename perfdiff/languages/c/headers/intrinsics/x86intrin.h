#undef PERFDIFF_INTRINSICS
#define PERFDIFF_INTRINSICS <x86intrin.h>
#include "as_functions.h"
