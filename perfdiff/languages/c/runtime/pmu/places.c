/* What an address lies in: an object, or a thread's stack. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lines.h"

#define READINGS 64u /* of /proc/self/maps, which may be long */
#define LINE_BYTES 256u
#define MAIN_STACK "[stack]"

struct mapping {
	uintptr_t start;
	uintptr_t end;
	bool anonymous;
	bool main_stack;
};

/* `start-end permissions offset device inode   path`, whatever part of the path is there. */
static bool mapping_parse(const char *line, struct mapping *mapping)
{
	const char *path = line;
	char *end;

	mapping->start = strtoul(line, &end, 16);
	if (*end != '-')
		return false;
	mapping->end = strtoul(end + 1, &end, 16);
	for (path = end; *path && *path != '/' && *path != '['; path++)
		;
	mapping->anonymous = !*path;
	mapping->main_stack = !strncmp(path, MAIN_STACK, sizeof(MAIN_STACK) - 1);
	return true;
}

static bool mapping_of(uintptr_t address, struct mapping *mapping)
{
	int file = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
	char line[LINE_BYTES], part[1024];
	size_t length = 0;
	bool found = false;
	long bytes;

	if (file < 0)
		return false;
	while (!found && (bytes = syscall(SYS_read, file, part, sizeof(part))) > 0) {
		for (long i = 0; i < bytes && !found; i++) {
			if (part[i] != '\n') {
				if (length < LINE_BYTES - 1)
					line[length++] = part[i];
				continue;
			}
			line[length] = '\0';
			length = 0;
			found = mapping_parse(line, mapping) && address >= mapping->start && address < mapping->end;
		}
	}
	syscall(SYS_close, file);
	return found;
}

/*
 * A thread's static TLS, with its core, lies at the top of its stack's mapping; the main thread's lies elsewhere. Adjoining stacks
 * may be one mapping: the nearest core above is the owner.
 */
static uint32_t owner_in(uintptr_t address, const struct mapping *mapping)
{
	uint32_t cores = atomic_load_explicit(&pd_pmu.cores, memory_order_acquire), owner = PD_OTHER_CORES;
	uintptr_t nearest = mapping->end;

	for (uint32_t core = 0; core < cores; core++) {
		uintptr_t place = (uintptr_t)pd_pmu.caches[core]->owner;

		if (place > address && place < nearest) {
			nearest = place;
			owner = core;
		}
	}
	return owner;
}

uint32_t pd_stack_owner(uintptr_t address)
{
	static _Atomic uint32_t readings;
	uint32_t owner = PD_OTHER_CORES;
	struct mapping mapping;
	int error = errno;

	if (atomic_fetch_add_explicit(&readings, 1, memory_order_relaxed) < READINGS && mapping_of(address, &mapping)) {
		if (mapping.main_stack)
			owner = 0;
		else if (mapping.anonymous)
			owner = owner_in(address, &mapping);
	}
	errno = error;
	return owner;
}

#ifdef PD_STATIC

bool pd_object_of(uintptr_t address __attribute__((unused)), uint64_t *offset __attribute__((unused)), char *path __attribute__((unused)),
		  size_t room __attribute__((unused)))
{
	return false;
}

#else

/* The offset is that of the object's own symbols. Addresses of data are found, too. */
bool pd_object_of(uintptr_t address, uint64_t *offset, char *path, size_t room)
{
	char resolved[4096];
	struct link_map *map;
	const char *name;
	Dl_info info;

	if (!address || !dladdr1((void *)address, &info, (void **)&map, RTLD_DL_LINKMAP))
		return false;
	*offset = address - map->l_addr;
	name = *map->l_name ? realpath(map->l_name, resolved) : pd_process.header->program;
	if (!name || strlen(name) >= room)
		return false;
	strcpy(path, name);
	return true;
}

#endif
