/* What libFuzzer calls: the main of a program that reads the file which its first argument names. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int searched_main(int argc, char **argv);

#ifdef __cplusplus
extern "C"
#endif
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static char name[] = "program", path[32];
	char *argv[] = {name, path, NULL};
	int file = memfd_create("input", 0);

	if (file < 0 || write(file, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	searched_main(2, argv);
	close(file);
	return 0;
}
