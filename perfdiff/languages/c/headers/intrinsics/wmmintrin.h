#undef PERFDIFF_INTRINSICS
#define PERFDIFF_INTRINSICS <wmmintrin.h>
#include "as_functions.h"
