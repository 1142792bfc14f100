/*
 * Calls that leave the project's code, by the name of the function called and by the probed call that is open.
 *
 * For each function that an object calls and does not hold, its table has a word with the function's address (its jump slot, ELF). As
 * counted objects are loaded, those words that lead out of all counted objects are made to lead to thunks here. A thunk counts the
 * call, as one over an edge of the recording, and goes on to the function with all registers as they were. What the C library calls
 * itself, and what is called through pointers, passes by; where a name's calls may do so (its address is taken in the same object,
 * `-fno-plt`, lazy binding), the recording says that they are not seen.
 */
#include "pmu.h"

#if defined(PD_STATIC) || !defined(__x86_64__)

void pd_library_begin(void)
{
}

bool pd_divisions_seen(void)
{
	return false;
}

#else

#include <cpuid.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A block that names a function; edges lead to `PD_LIBRARY | number`. */
#define PD_BLOCK_FUNCTION 7u
#define PD_LIBRARY (UINT32_C(1) << 31)

struct pd_function_block {
	struct pd_block block;
	uint32_t number;
	uint32_t unseen; /* some of its calls are not counted */
	uint64_t length;
	char name[];
};

#define THUNKS 1024 /* large programs call some hundred functions of libraries */
#define THUNK_BYTES 128
#define PD_OUTSIDE 176 /* of the field in struct pd_thread */
#define AS_TEXT(value) #value
#define TEXT(value) AS_TEXT(value)
#define OBJECTS 256u /* the project's own, in one process */
#define NAMES_BYTES 65536u

/* A function outside, from the first object that calls it on. Two of one name, of several versions, are two. */
struct function {
	const void *target; /* NULL: not counted */
	const char *name;
};

/* What the dynamic linker knows of an object of the project. */
struct object {
	uintptr_t base, start, end; /* where its code and data lie */
	uintptr_t protected, protected_end; /* made read-only once it was linked */
	const ElfW(Sym) * symbols;
	const char *strings;
	const ElfW(Rela) * slots, *others;
	size_t slot_count, other_count;
};

extern char pd_library_thunks[] __attribute__((visibility("hidden")));

__attribute__((visibility("hidden"), used)) struct function pd_library_functions[THUNKS];
static uint32_t function_count;
static char names[NAMES_BYTES];
static size_t names_used;
static uint32_t published; /* functions that the recording names */
static struct object objects[OBJECTS];
static uint32_t object_count;
static bool divisions_seen;
__attribute__((visibility("hidden"), used)) bool pd_has_wide_registers; /* beyond 16 bytes */

bool pd_divisions_seen(void)
{
	return divisions_seen;
}

/* Under the slow path's lock. */
static void publish(void)
{
	for (uint32_t count = function_count; published < count; published++) {
		const struct function *function = &pd_library_functions[published];
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

/* The first call of a function from a probe in a thread. */
__attribute__((visibility("hidden"), used)) void pd_library_first(struct pd_thread *thread, uint32_t caller, uint32_t callee)
{
	struct pd_slow slow;

	pd_slow_begin(&slow);
	publish();
	if (!thread->outside)
		thread->outside = pd_memory(THUNKS * sizeof(*thread->outside));
	pd_slow_end(&slow);
	pd_edge_find(thread, caller, callee)->calls++;
}

void pd_library_first_saving(struct pd_thread *thread, uint32_t caller, uint32_t callee) __attribute__((visibility("hidden")));

/* A call from another probe than the last one. Arguments of that call lie in vector registers: nothing here may touch them. */
__attribute__((visibility("hidden"), used)) PD_GENERAL void pd_library_called(uint32_t number)
{
	struct pd_thread *thread = pd_self.thread;
	uint32_t caller, callee = PD_LIBRARY | number;
	struct pd_edge *edge;

	if (pd_unlikely(!thread))
		return;
	caller = thread->top->local->probe;
	edge = pd_edge_known(thread, caller, callee);
	if (pd_unlikely(!edge || !thread->outside)) {
		pd_library_first_saving(thread, caller, callee);
		return;
	}
	edge->calls++;
	thread->outside[number] = edge;
}

/* What the thunks find their way by. */
_Static_assert(offsetof(struct pd_local_state, thread) == 0 && offsetof(struct pd_thread, top) == 0, "thread and top");
_Static_assert(offsetof(struct pd_thread, outside) == PD_OUTSIDE && offsetof(struct pd_entry, local) == 24, "outside and local");
_Static_assert(offsetof(struct pd_local, probe) == 16, "probe");
_Static_assert(offsetof(struct pd_edge, caller) == 0 && offsetof(struct pd_edge, calls) == 8, "caller and calls");
_Static_assert(sizeof(struct function) == 16 && offsetof(struct function, target) == 0, "target");

/*
 * Each thunk counts and jumps by itself, so that processors foresee where it leads. r10 and r11 are free, as linkers' own thunks use them.
 * Where the caller is the last one, its edge is at hand; else all that a call may hand over is kept, and r10 leads back. Vector registers
 * are kept whole where C code may change them: XSAVE's area has room for those of AVX-512 (2,688 bytes), 0xe6 are its parts.
 */
__asm__(
	"	.text\n"
	"	.globl pd_library_thunks\n"
	"	.hidden pd_library_thunks\n"
	"	.type pd_library_thunks, @function\n"
	"	.balign " TEXT(THUNK_BYTES) "\n"
	"pd_library_thunks:\n"
	"	.set .Lpd_number, 0\n"
	"	.rept " TEXT(THUNKS) "\n"
	"	.balign " TEXT(THUNK_BYTES) "\n"
	"	endbr64\n"
	"	pushq %rax\n"
	"	movq pd_self@gottpoff(%rip), %r10\n"
	"	movq %fs:(%r10), %r10\n"
	"	testq %r10, %r10\n"
	"	jz 1f\n"
	"	movq " TEXT(PD_OUTSIDE) "(%r10), %rax\n"
	"	testq %rax, %rax\n"
	"	jz 2f\n"
	"	movq 8 * .Lpd_number(%rax), %rax\n"
	"	testq %rax, %rax\n"
	"	jz 2f\n"
	"	movq (%r10), %r10\n"
	"	movq 24(%r10), %r10\n"
	"	movl 16(%r10), %r10d\n"
	"	cmpl %r10d, (%rax)\n"
	"	jne 2f\n"
	"	incq 8(%rax)\n"
	"1:	popq %rax\n"
	"	jmp *pd_library_functions + 16 * .Lpd_number(%rip)\n"
	"2:	movl $.Lpd_number, %r11d\n"
	"	leaq 1b(%rip), %r10\n"
	"	jmp .Lpd_other_caller\n"
	"	.set .Lpd_number, .Lpd_number + 1\n"
	"	.endr\n"
	"	.size pd_library_thunks, . - pd_library_thunks\n"

	"	.p2align 4\n"
	".Lpd_other_caller:\n" /* rax and the return address are on the stack */
	"	pushq %rcx\n"
	"	pushq %rdx\n"
	"	pushq %rsi\n"
	"	pushq %rdi\n"
	"	pushq %r8\n"
	"	pushq %r9\n"
	"	pushq %r10\n"
	"	subq $8, %rsp\n"
	"	movl %r11d, %edi\n"
	"	call pd_library_called\n"
	"	addq $8, %rsp\n"
	"	popq %r10\n"
	"	popq %r9\n"
	"	popq %r8\n"
	"	popq %rdi\n"
	"	popq %rsi\n"
	"	popq %rdx\n"
	"	popq %rcx\n"
	"	jmp *%r10\n"

	"	.hidden pd_library_first_saving\n"
	"	.type pd_library_first_saving, @function\n"
	"pd_library_first_saving:\n"
	"	pushq %rbp\n"
	"	movq %rsp, %rbp\n"
	"	subq $2688, %rsp\n"
	"	andq $-64, %rsp\n"
	"	cmpb $0, pd_has_wide_registers(%rip)\n"
	"	je .Lpd_narrow\n"
	"	.set .Lpd_word, 512\n" /* the area's header is to be 0 */
	"	.rept 8\n"
	"	movq $0, .Lpd_word(%rsp)\n"
	"	.set .Lpd_word, .Lpd_word + 8\n"
	"	.endr\n"
	"	movl %edx, %ecx\n"
	"	movl $0xe6, %eax\n"
	"	xorl %edx, %edx\n"
	"	xsave64 (%rsp)\n"
	"	movl %ecx, %edx\n"
	"	call pd_library_first\n"
	"	movl $0xe6, %eax\n"
	"	xorl %edx, %edx\n"
	"	xrstor64 (%rsp)\n"
	"	leave\n"
	"	ret\n"
	".Lpd_narrow:\n"
	"	fxsave64 (%rsp)\n"
	"	call pd_library_first\n"
	"	fxrstor64 (%rsp)\n"
	"	leave\n"
	"	ret\n");

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
		if (pd_library_functions[i].target == target && !strcmp(pd_library_functions[i].name, name))
			return i;
	if (function_count == THUNKS || bytes > NAMES_BYTES - names_used)
		return THUNKS;
	pd_library_functions[function_count] = (struct function){target, memcpy(names + names_used, name, bytes)};
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
	return address - (uintptr_t)pd_library_thunks < THUNKS * THUNK_BYTES;
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
		number = writable ? add(name_of(object, slot), (const void *)*place) : THUNKS;
		if (number < THUNKS)
			__atomic_store_n(place, (uintptr_t)(pd_library_thunks + number * THUNK_BYTES), __ATOMIC_RELEASE);
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
	unsigned int highest, ignored, flags;
	struct pd_slow slow;
	bool counted = true;

	dl_iterate_phdr(changes, &now);
	if (now == known)
		return;
	known = now;
	pd_has_wide_registers = __get_cpuid(1, &highest, &ignored, &flags, &ignored) && flags & bit_OSXSAVE;
	object_count = 0;
	dl_iterate_phdr(collect, NULL);
	for (uint32_t i = 0; i < object_count; i++) {
		attach(&objects[i]);
		counted = counted && counts_divisions(&objects[i]);
	}
	divisions_seen = counted && object_count;
	pd_slow_begin(&slow);
	publish();
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
