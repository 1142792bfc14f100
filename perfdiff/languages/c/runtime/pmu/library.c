/*
 * Calls that leave the project's code, by the name of the function called and by the probed call that is open.
 *
 * For each function that an object calls and does not hold, its table has a word with the function's address (its jump slot, ELF). As
 * counted objects are loaded, those words that lead out of all counted objects are made to lead to thunks (thunks.c), which count the
 * calls. What the C library calls itself, and what is called through pointers, passes by; where a name's calls may do so (its address is
 * taken in the same object, `-fno-plt`, lazy binding), the recording says that they are not seen.
 */
#include "pmu.h"
#include "thunks.h"

#if defined(PD_STATIC) || !defined(__x86_64__)

void pd_library_begin(void)
{
}

bool pd_divisions_seen(void)
{
	return false;
}

#else

#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OBJECTS 256u /* the project's own, in one process */
#define NAMES_BYTES 65536u

/* What the dynamic linker knows of an object of the project. */
struct object {
	uintptr_t base, start, end; /* where its code and data lie */
	uintptr_t protected, protected_end; /* made read-only once it was linked */
	const ElfW(Sym) * symbols;
	const char *strings;
	const ElfW(Rela) * slots, *others;
	size_t slot_count, other_count;
};

static uint32_t function_count;
static char names[NAMES_BYTES];
static size_t names_used;
static uint32_t published; /* functions that the recording names */
static struct object objects[OBJECTS];
static uint32_t object_count;
static bool divisions_seen;

bool pd_divisions_seen(void)
{
	return divisions_seen;
}

void pd_functions_publish(void)
{
	for (uint32_t count = function_count; published < count; published++) {
		const struct pd_function *function = &pd_functions[published];
		size_t length = strlen(function->name), size = (sizeof(struct pd_function_block) + length + 7) & ~(size_t)7;
		struct pd_function_block *block = pd_recording() ? pd_arena_take(&pd_process.arena, size) : NULL;

		if (!block)
			return;
		block->number = published;
		block->unseen = !function->target;
		block->length = length;
		memcpy(block->name, function->name, length);
		pd_block_publish(&block->block, PD_BLOCK_FUNCTION, size);
	}
}

/* Of our own interface, and of functions that are no ordinary calls. */
static bool is_ordinary(const char *name)
{
	static const char *const ours[] = {"__tsan_", "__sanitizer_", "pd_"};
	static const char *const special[] = {"__tls_get_addr", "__cxa_finalize", "mcount", "_mcount", "__fentry__"};

	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		if (!strncmp(name, ours[i], strlen(ours[i])))
			return false;
	for (size_t i = 0; i < sizeof(special) / sizeof(*special); i++)
		if (!strcmp(name, special[i]))
			return false;
	return true;
}

static const char *name_of(const struct object *object, const ElfW(Rela) * relocation)
{
	return object->strings + object->symbols[ELF64_R_SYM(relocation->r_info)].st_name;
}

static uintptr_t *place_of(const struct object *object, const ElfW(Rela) * relocation)
{
	return (uintptr_t *)(object->base + relocation->r_offset);
}

static bool calls(const struct object *object, const char *name)
{
	for (size_t i = 0; i < object->slot_count; i++)
		if (!strcmp(name_of(object, &object->slots[i]), name))
			return true;
	return false;
}

/* Whether anything outside its code refers to a symbol by name. */
static bool refers(const struct object *object, const char *name)
{
	for (size_t i = 0; i < object->other_count; i++)
		if (!strcmp(name_of(object, &object->others[i]), name))
			return true;
	return calls(object, name);
}

/* Objects whose assembler knows the macros of perfdiff_inline.h use our core, and leave no call of these. */
static bool counts_divisions(const struct object *object)
{
	static const char *const plain[] = {
		"__tsan_read1", "__tsan_read2", "__tsan_read4", "__tsan_read8", "__tsan_read16",
		"__tsan_write1", "__tsan_write2", "__tsan_write4", "__tsan_write8", "__tsan_write16",
	};

	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		if (refers(object, plain[i]))
			return false;
	return refers(object, "pd_core");
}

static uint32_t add(const char *name, const void *target)
{
	size_t bytes = strlen(name) + 1;

	for (uint32_t i = 0; i < function_count; i++)
		if (pd_functions[i].target == target && !strcmp(pd_functions[i].name, name))
			return i;
	if (function_count == PD_THUNKS || bytes > NAMES_BYTES - names_used)
		return PD_THUNKS;
	pd_functions[function_count] = (struct pd_function){target, memcpy(names + names_used, name, bytes)};
	names_used += bytes;
	pd_order();
	return function_count++;
}

static bool is_inside(const struct object *object, uintptr_t address)
{
	return address >= object->start && address < object->end;
}

static bool is_ours(uintptr_t address)
{
	for (uint32_t i = 0; i < object_count; i++)
		if (is_inside(&objects[i], address))
			return true;
	return pd_is_thunk(address);
}

static bool unprotect(const struct object *object, int protection)
{
	return object->protected == object->protected_end ||
	       !mprotect((void *)object->protected, object->protected_end - object->protected, protection);
}

/* Leads an object's calls through thunks; notes those that cannot be. */
static void attach(const struct object *object)
{
	bool writable = unprotect(object, PROT_READ | PROT_WRITE);

	for (size_t i = 0; i < object->slot_count; i++) {
		const ElfW(Rela) *slot = &object->slots[i];
		uintptr_t *place = place_of(object, slot);
		uint32_t number;

		if (ELF64_R_TYPE(slot->r_info) != R_X86_64_JUMP_SLOT || !*place || !is_ordinary(name_of(object, slot)))
			continue;
		if (is_inside(object, *place) && !object->symbols[ELF64_R_SYM(slot->r_info)].st_value) { /* bound at its first call */
			add(name_of(object, slot), NULL);
			continue;
		}
		if (is_ours(*place))
			continue;
		number = writable ? add(name_of(object, slot), (const void *)*place) : PD_THUNKS;
		if (number < PD_THUNKS)
			__atomic_store_n(place, pd_thunk(number), __ATOMIC_RELEASE);
		else
			add(name_of(object, slot), NULL);
	}
	if (writable)
		unprotect(object, PROT_READ);
	for (size_t i = 0; i < object->other_count; i++) {
		const ElfW(Rela) *other = &object->others[i];
		const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(other->r_info)];
		const char *name = name_of(object, other);

		if (ELF64_R_TYPE(other->r_info) == R_X86_64_GLOB_DAT && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && !symbol->st_value &&
		    is_ordinary(name) && !calls(object, name) && !is_ours(*place_of(object, other)))
			add(name, NULL);
	}
}

/* Addresses of the dynamic section are those in memory with glibc, those in the file with others. */
static const void *pointed(const struct object *object, const ElfW(Dyn) * entry)
{
	uintptr_t address = entry->d_un.d_ptr;

	return (const void *)(address < object->base ? object->base + address : address);
}

static bool object_read(const struct dl_phdr_info *info, struct object *object)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
	const ElfW(Dyn) *entry = NULL;

	*object = (struct object){.base = info->dlpi_addr, .start = UINTPTR_MAX};
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uintptr_t start = object->base + header->p_vaddr, end = start + header->p_memsz;

		if (header->p_type == PT_DYNAMIC) {
			entry = (const ElfW(Dyn) *)start;
		} else if (header->p_type == PT_GNU_RELRO) {
			object->protected = start & ~page;
			object->protected_end = end & ~page; /* as the dynamic linker rounds it */
		} else if (header->p_type == PT_LOAD) {
			object->start = start < object->start ? start : object->start;
			object->end = end > object->end ? end : object->end;
		}
	}
	for (; entry && entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_SYMTAB)
			object->symbols = pointed(object, entry);
		else if (entry->d_tag == DT_STRTAB)
			object->strings = pointed(object, entry);
		else if (entry->d_tag == DT_JMPREL)
			object->slots = pointed(object, entry);
		else if (entry->d_tag == DT_RELA)
			object->others = pointed(object, entry);
		else if (entry->d_tag == DT_PLTRELSZ)
			object->slot_count = entry->d_un.d_val / sizeof(ElfW(Rela));
		else if (entry->d_tag == DT_RELASZ)
			object->other_count = entry->d_un.d_val / sizeof(ElfW(Rela));
	}
	object->slot_count = object->slots ? object->slot_count : 0;
	object->other_count = object->others ? object->other_count : 0;
	return object->symbols && object->strings;
}

static int collect(struct dl_phdr_info *info, size_t size __attribute__((unused)), void *data __attribute__((unused)))
{
	struct object *object = &objects[object_count];

	object_count += object_read(info, object) && refers(object, "__tsan_init");
	return object_count == OBJECTS;
}

static int changes(struct dl_phdr_info *info, size_t size __attribute__((unused)), void *data)
{
	*(unsigned long long *)data = info->dlpi_adds + info->dlpi_subs;
	return 1;
}

/* Each unit of a counted object says when it is loaded, before any of its own code runs; the dynamic linker lets one at a time. */
void pd_library_begin(void)
{
	static unsigned long long known;
	unsigned long long now = 0;
	struct pd_slow slow;
	bool counted = true;

	dl_iterate_phdr(changes, &now);
	if (now == known)
		return;
	known = now;
	pd_thunks_begin();
	object_count = 0;
	dl_iterate_phdr(collect, NULL);
	for (uint32_t i = 0; i < object_count; i++) {
		attach(&objects[i]);
		counted = counted && counts_divisions(&objects[i]);
	}
	divisions_seen = counted && object_count;
	pd_slow_begin(&slow);
	pd_functions_publish();
	pd_slow_end(&slow);
}

static void child_begin(void)
{
	published = 0;
}

static __attribute__((constructor(102))) void begin(void)
{
	static struct pd_child child = {.begin = child_begin};

	pd_child_add(&child);
}

#endif
