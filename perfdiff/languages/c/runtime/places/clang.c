/* The counters of objects that clang compiled. */
#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNED(bytes) (((bytes) + 3) & ~(size_t)3)

int __llvm_profile_write_file(void);
void __llvm_profile_reset_counters(void);
void __llvm_profile_set_filename(const char *name);

/* What atexit asks for, in libraries that are linked without the files that a compiler puts at their beginning. */
__attribute__((weak, visibility("hidden"))) void *__dso_handle = &__dso_handle;

/* An object of ours in this program or library, and the hexadecimal digits of the build id that its notes hold. */
struct identity {
	uintptr_t inside;
	char digits[2 * 64 + 1];
};

static void read_notes(const char *note, const char *end, struct identity *identity)
{
	while (note + sizeof(ElfW(Nhdr)) <= end) {
		const ElfW(Nhdr) *header = (const ElfW(Nhdr) *)note;
		const char *name = note + sizeof(*header), *content = name + ALIGNED(header->n_namesz);

		if (header->n_type == NT_GNU_BUILD_ID && header->n_namesz == 4 && !memcmp(name, "GNU", 4))
			for (size_t i = 0; i < header->n_descsz && 2 * i + 2 < sizeof(identity->digits); i++)
				snprintf(identity->digits + 2 * i, 3, "%02x", (unsigned char)content[i]);
		note = content + ALIGNED(header->n_descsz);
	}
}

static int look_at(struct dl_phdr_info *loaded, size_t size, void *data)
{
	struct identity *identity = data;
	int is_ours = 0;

	(void)size;
	for (int i = 0; i < loaded->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &loaded->dlpi_phdr[i];
		uintptr_t start = loaded->dlpi_addr + part->p_vaddr;

		is_ours |= part->p_type == PT_LOAD && identity->inside >= start && identity->inside - start < part->p_memsz;
	}
	for (int i = 0; is_ours && i < loaded->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &loaded->dlpi_phdr[i];
		const char *start = (const char *)(loaded->dlpi_addr + part->p_vaddr);

		if (part->p_type == PT_NOTE)
			read_notes(start, start + part->p_memsz, identity);
	}
	return is_ours;
}

/*
 * Programs whose functions look alike have the same signature (%m), and would add to each other's counts. Outside of counted runs no
 * counts are left.
 */
static void settle(const char *folder)
{
	static char name[PATH_MAX];
	struct identity identity = {(uintptr_t)name, ""};

	if (folder && strchr(folder, '%'))
		return; /* it would be read as a pattern */
	dl_iterate_phdr(look_at, &identity);
	if (folder && snprintf(name, sizeof(name), "%s/%s-%%m.profraw", folder, identity.digits) < (int)sizeof(name))
		__llvm_profile_set_filename(name);
	else if (!folder && !getenv("LLVM_PROFILE_FILE"))
		__llvm_profile_set_filename("/dev/null");
}

#define PD_SETTLE settle
#define PD_WRITE __llvm_profile_write_file
#define PD_CLEAR __llvm_profile_reset_counters
#include "counters.h"
