#undef PERFDIFF_INTRINSICS
#define PERFDIFF_INTRINSICS <emmintrin.h>
#include "as_functions.h"
