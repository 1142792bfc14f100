#undef PERFDIFF_INTRINSICS
#define PERFDIFF_INTRINSICS <ammintrin.h>
#include "as_functions.h"
