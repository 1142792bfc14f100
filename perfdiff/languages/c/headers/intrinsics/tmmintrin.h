#undef PERFDIFF_INTRINSICS
#define PERFDIFF_INTRINSICS <tmmintrin.h>
#include "as_functions.h"
