#undef PERFDIFF_INTRINSICS
#define PERFDIFF_INTRINSICS <nmmintrin.h>
#include "as_functions.h"
