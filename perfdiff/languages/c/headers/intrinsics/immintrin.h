#undef PERFDIFF_INTRINSICS
#define PERFDIFF_INTRINSICS <immintrin.h>
#include "as_functions.h"
