/* The counters of objects that clang compiled. */
int __llvm_profile_write_file(void);
void __llvm_profile_reset_counters(void);

#define PD_WRITE __llvm_profile_write_file
#define PD_CLEAR __llvm_profile_reset_counters
#include "counters.h"
