#undef PERFDIFF_INTRINSICS
#define PERFDIFF_INTRINSICS <smmintrin.h>
#include "as_functions.h"
