#undef PERFDIFF_INTRINSICS
#define PERFDIFF_INTRINSICS <pmmintrin.h>
#include "as_functions.h"
