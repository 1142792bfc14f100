#undef PERFDIFF_INTRINSICS
#define PERFDIFF_INTRINSICS <xmmintrin.h>
#include "as_functions.h"
